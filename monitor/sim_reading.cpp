#include <algorithm>
#include <cmath>

#include "monitor/sim_device.hpp"

// What a monitor reads of a simulated device: by DCMI for an Ascend, by NVML for an NVIDIA, in the order of the
// metrics.
namespace infernex::monitor {

namespace {

double to_one_decimal(double x) { return std::round(10 * x) / 10; }

/// Of a 910B: hint 0, minor 1, major 2, critical 3 (DCMI's health follows the gravest code).
double health_of(const sim_device& device) {
  auto worst = fb::HwLevel::Hint;
  for (const auto& code : device.codes) worst = std::max(worst, code.level);
  return static_cast<double>(worst) - 1;
}

double memory_used(const sim_device& device) {
  const double share = device.processes == 0 ? 0.086 : 0.86;
  return std::floor(share * device.condition.memory_share * static_cast<double>(device.model->memory_bytes >> 20)) *
         1048576.0;
}

double sensed_temperature(const sim_device& device, sim_random& random) {
  return std::round(device.celsius + device.traits.sensor_offset + device.influence.spike + 0.35 * random.noise());
}

void read_ascend(const sim_device& d, std::uint32_t slow, sim_random& random, readings& to) {
  const auto& m = *d.model;
  const auto& c = d.counts;
  const auto& is = d.condition;
  to.set(metric::Temperature, sensed_temperature(d, random));
  to.set(metric::MemoryTemperature, std::round(d.memory_celsius + 0.35 * random.noise()));
  to.set(metric::SlowdownTemperature, m.slowdown_celsius);
  to.set(metric::Power, to_one_decimal(d.watts));
  to.set(metric::Voltage, 0.85 + 0.01 * std::round(0.6 * random.noise()));
  to.set(metric::AicoreUtilization, std::round(d.utilization));
  to.set(metric::MemoryUtilization, std::round(100 * memory_used(d) / static_cast<double>(m.memory_bytes)));
  to.set(metric::MemoryBandwidthUtilization, std::round(d.bandwidth));
  to.set(metric::MemoryTotal, static_cast<double>(m.memory_bytes) * is.memory_share);
  to.set(metric::MemoryUsed, memory_used(d));
  to.set(metric::CoreClock, std::round(m.rated_mhz * d.clock));
  to.set(metric::RatedCoreClock, m.rated_mhz);
  to.set(metric::MemoryClock, m.memory_mhz);
  to.set(metric::EccEnabled, 1);
  to.set(metric::EccSingle, c.ecc_single);
  to.set(metric::EccDouble, c.ecc_double);
  to.set(metric::EccSingleLifetime, c.ecc_single_lifetime);
  to.set(metric::EccDoubleLifetime, c.ecc_double_lifetime);
  to.set(metric::RetiredPagesSingle, c.pages_single);
  to.set(metric::RetiredPagesDouble, c.pages_double);
  to.set(metric::RetiredPagesPending, c.pages_pending);
  to.set(metric::HccsCrcErrors, c.hccs_crc);
  to.set(metric::PortState, is.port_up);
  to.set(metric::PortUps, c.port_ups);
  to.set(metric::PortDowns, c.port_downs);
  to.set(metric::NetworkHealth, is.network_health);
  to.set(metric::FecMode, is.fec, 0, slow);
  to.set(metric::AddressConfigured, 1, 0, slow);
  to.set(metric::RoceTxPackets, c.roce_packets);
  to.set(metric::RoceRetries, c.roce_retries);
  to.set(metric::OpticalPresent, 1, 0, slow);
  for (std::uint16_t lane = 0; lane < 4; ++lane) to.set(metric::OpticalTxPower, is.tx_milliwatts[lane], lane, slow);
  for (std::uint16_t lane = 0; lane < 4; ++lane) to.set(metric::OpticalRxPower, is.rx_milliwatts[lane], lane, slow);
  to.set(metric::Health, health_of(d));
  to.set(metric::Compatibility, is.compatibility);
  to.set(metric::ProcessCount, d.processes);
}

void read_nvidia(const sim_device& d, sim_random& random, readings& to) {
  const auto& m = *d.model;
  const auto& c = d.counts;
  const auto& is = d.condition;
  const bool idle = d.utilization == 0;
  const double temperature = sensed_temperature(d, random);
  unsigned reasons = idle ? 1U : 0U;
  if (d.power_capped) reasons |= 4U;
  if (d.throttled) reasons |= 0x48U;
  if (d.influence.brake) reasons |= 0x88U;
  // Under its power limit the clock wanders below the rated.
  const double capped = d.power_capped ? 0.94 + 0.01 * std::round(random.noise()) : 1.0;
  to.set(metric::Temperature, temperature);
  to.set(metric::MemoryTemperature, std::round(d.memory_celsius + 0.35 * random.noise()));
  to.set(metric::TemperatureMargin, m.slowdown_celsius - 2 - temperature);
  to.set(metric::MarginSlowdown, -2);
  to.set(metric::Power, to_one_decimal(std::min(d.watts, 1.02 * m.most_watts)));
  to.set(metric::PowerLimit, m.most_watts);
  to.set(metric::Utilization, std::round(d.utilization));
  to.set(metric::MemoryBandwidthUtilization, std::round(d.bandwidth));
  to.set(metric::MemoryTotal, static_cast<double>(m.memory_bytes));
  to.set(metric::MemoryUsed, memory_used(d));
  to.set(metric::CoreClock, idle ? m.idle_mhz : 15 * std::round(m.rated_mhz * d.clock * capped / 15));
  to.set(metric::RatedCoreClock, m.rated_mhz);
  to.set(metric::MemoryClock, m.memory_mhz);
  to.set(metric::ClockReasons, reasons);
  to.set(metric::SoftwareThermalSeconds, 0);
  to.set(metric::HardwareThermalSeconds, c.thermal_seconds);
  to.set(metric::PowerBrakeSeconds, c.brake_seconds);
  to.set(metric::EccEnabled, 1);
  to.set(metric::EccSingle, c.ecc_single);
  to.set(metric::EccDouble, c.ecc_double);
  to.set(metric::EccSingleLifetime, c.ecc_single_lifetime);
  to.set(metric::EccDoubleLifetime, c.ecc_double_lifetime);
  to.set(metric::SramEccDouble, 0);
  to.set(metric::RemappedRowsCorrectable, c.rows_correctable);
  to.set(metric::RemappedRowsUncorrectable, c.rows_uncorrectable);
  to.set(metric::RowRemapPending, is.row_pending);
  to.set(metric::RowRemapFailure, is.row_failure);
  for (std::uint16_t link = 0; link < m.links; ++link) to.set(metric::LinkState, !(is.links_down >> link & 1U), link);
  to.set(metric::LinkCrcFlitErrors, c.link_crc);
  to.set(metric::LinkReplays, c.link_replays);
  to.set(metric::LinkRecoveries, c.link_recoveries);
  to.set(metric::PcieGeneration, 5);
  to.set(metric::PcieGenerationMax, 5);
  to.set(metric::PcieWidth, is.pcie_width);
  to.set(metric::PcieWidthMax, 16);
  to.set(metric::PcieReplays, c.pcie_replays);
  to.set(metric::PortState, is.port_up);
  to.set(metric::RecoveryAction, is.recovery_action);
  to.set(metric::ProcessCount, d.processes);
}

}  // namespace

void read_device(const sim_device& d, std::uint32_t slow_age_ms, sim_random& random, device_sample& into) {
  if (into.index != d.index || into.id != d.id) {
    into.index = d.index;
    into.id = d.id;
  }
  into.vendor = d.model->vendor;
  into.failures.clear();
  const auto& now = d.influence;
  const bool ascend = d.model->vendor == fb::HwVendor::Ascend;
  if (now.hang_ms != 0) {  // the last readings, older by the minute
    into.values.set(metric::DriverHangMs, now.hang_ms);
    return;
  }
  into.values.clear();
  into.codes.reset();
  if (now.dropped || now.mismatched) {
    into.failures.emplace_back(metric::Health, ascend ? -8012 : now.dropped ? 15 : 18);
    return;
  }
  if (ascend)
    read_ascend(d, slow_age_ms, random, into.values);
  else
    read_nvidia(d, random, into.values);
  into.values.set(metric::DriverHangMs, 0);
  if (now.read_failed) {
    into.values.erase(metric::Power);
    into.failures.emplace_back(metric::Power, ascend ? -8006 : 10);
  }
  if (!ascend) return;
  into.codes.emplace();
  for (const auto& code : d.codes) into.codes->push_back(code.number);
}

}  // namespace infernex::monitor
