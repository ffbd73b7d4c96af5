#include "monitor/metric.hpp"

#include <array>
#include <cmath>
#include <limits>

namespace infernex::monitor {

namespace {

constexpr std::array<metric_info, metric_count> make_metric_table() {
  constexpr double any = std::numeric_limits<double>::max();
  constexpr double big = 1e18;
  // Where they have no count, drivers answer with all bits set.
  constexpr double count = 4294967294.0;
  constexpr auto gauge = metric_kind::gauge;
  constexpr auto counter = metric_kind::counter;
  constexpr auto lifetime = metric_kind::lifetime;
  constexpr auto state = metric_kind::state;
  return {{
      {metric::Unknown, "unknown", "", gauge, -any, any},
      {metric::Temperature, "temperature", "C", gauge, -60, 250},
      {metric::MemoryTemperature, "memory_temperature", "C", gauge, -60, 250},
      {metric::SocTemperature, "soc_temperature", "C", gauge, -60, 250},
      {metric::CoreTemperature, "core_temperature", "C", gauge, -60, 250},
      {metric::InletTemperature, "inlet_temperature", "C", gauge, -60, 250},
      {metric::SlowdownTemperature, "slowdown_temperature", "C", gauge, -60, 250},
      {metric::ShutdownTemperature, "shutdown_temperature", "C", gauge, -60, 250},
      {metric::TemperatureMargin, "temperature_margin", "C", gauge, -200, 200},
      {metric::MarginSlowdown, "margin_slowdown", "C", gauge, -200, 200},
      {metric::Power, "power", "W", gauge, 0, 5000},
      {metric::PowerLimit, "power_limit", "W", gauge, 0, 5000},
      {metric::EnergyTotal, "energy_total", "J", counter, 0, any},
      {metric::Voltage, "voltage", "V", gauge, 0, 100},
      {metric::FanSpeed, "fan_speed", "%", gauge, 0, 250},
      {metric::Utilization, "utilization", "%", gauge, 0, 100},
      {metric::AicoreUtilization, "aicore_utilization", "%", gauge, 0, 100},
      {metric::VectorUtilization, "vector_utilization", "%", gauge, 0, 100},
      {metric::CubeUtilization, "cube_utilization", "%", gauge, 0, 100},
      {metric::AicpuUtilization, "aicpu_utilization", "%", gauge, 0, 100},
      {metric::ControlCpuUtilization, "control_cpu_utilization", "%", gauge, 0, 100},
      {metric::MemoryUtilization, "memory_utilization", "%", gauge, 0, 100},
      {metric::MemoryBandwidthUtilization, "memory_bandwidth_utilization", "%", gauge, 0, 100},
      {metric::DdrUtilization, "ddr_utilization", "%", gauge, 0, 100},
      {metric::EncoderUtilization, "encoder_utilization", "%", gauge, 0, 100},
      {metric::DecoderUtilization, "decoder_utilization", "%", gauge, 0, 100},
      {metric::MemoryTotal, "memory_total", "B", gauge, 0, big},
      {metric::MemoryUsed, "memory_used", "B", gauge, 0, big},
      {metric::DdrTotal, "ddr_total", "B", gauge, 0, big},
      {metric::DdrUsed, "ddr_used", "B", gauge, 0, big},
      {metric::CoreClock, "core_clock", "MHz", gauge, 0, 100000},
      {metric::RatedCoreClock, "rated_core_clock", "MHz", gauge, 0, 100000},
      {metric::MemoryClock, "memory_clock", "MHz", gauge, 0, 100000},
      {metric::ControlCpuClock, "control_cpu_clock", "MHz", gauge, 0, 100000},
      {metric::ClockReasons, "clock_reasons", "", state, 0, big},
      {metric::SoftwareThermalSeconds, "software_thermal_seconds", "s", counter, 0, big},
      {metric::HardwareThermalSeconds, "hardware_thermal_seconds", "s", counter, 0, big},
      {metric::PowerBrakeSeconds, "power_brake_seconds", "s", counter, 0, big},
      {metric::ThermalViolationSeconds, "thermal_violation_seconds", "s", counter, 0, big},
      {metric::PowerViolationSeconds, "power_violation_seconds", "s", counter, 0, big},
      {metric::EccEnabled, "ecc_enabled", "", state, 0, 1},
      {metric::EccSingle, "ecc_single", "", counter, 0, count},
      {metric::EccDouble, "ecc_double", "", counter, 0, count},
      {metric::EccSingleLifetime, "ecc_single_lifetime", "", lifetime, 0, count},
      {metric::EccDoubleLifetime, "ecc_double_lifetime", "", lifetime, 0, count},
      {metric::SramEccSingle, "sram_ecc_single", "", counter, 0, count},
      {metric::SramEccDouble, "sram_ecc_double", "", counter, 0, count},
      {metric::DdrEccSingle, "ddr_ecc_single", "", counter, 0, count},
      {metric::DdrEccDouble, "ddr_ecc_double", "", counter, 0, count},
      {metric::RetiredPagesSingle, "retired_pages_single", "", lifetime, 0, count},
      {metric::RetiredPagesDouble, "retired_pages_double", "", lifetime, 0, count},
      {metric::RetiredPagesPending, "retired_pages_pending", "", gauge, 0, count},
      {metric::RemappedRowsCorrectable, "remapped_rows_correctable", "", lifetime, 0, count},
      {metric::RemappedRowsUncorrectable, "remapped_rows_uncorrectable", "", lifetime, 0, count},
      {metric::RowRemapPending, "row_remap_pending", "", state, 0, 1},
      {metric::RowRemapFailure, "row_remap_failure", "", state, 0, 1},
      {metric::LinkState, "link_state", "", state, 0, 1},
      {metric::LinkCrcFlitErrors, "link_crc_flit_errors", "", counter, 0, big},
      {metric::LinkCrcDataErrors, "link_crc_data_errors", "", counter, 0, big},
      {metric::LinkReplays, "link_replays", "", counter, 0, big},
      {metric::LinkRecoveries, "link_recoveries", "", counter, 0, big},
      {metric::HccsTxPackets, "hccs_tx_packets", "", counter, 0, big},
      {metric::HccsRxPackets, "hccs_rx_packets", "", counter, 0, big},
      {metric::HccsCrcErrors, "hccs_crc_errors", "", counter, 0, big},
      {metric::HccsRetries, "hccs_retries", "", counter, 0, big},
      {metric::PcieGeneration, "pcie_generation", "", gauge, 0, 10},
      {metric::PcieGenerationMax, "pcie_generation_max", "", gauge, 0, 10},
      {metric::PcieWidth, "pcie_width", "lanes", gauge, 0, 64},
      {metric::PcieWidthMax, "pcie_width_max", "lanes", gauge, 0, 64},
      {metric::PcieReplays, "pcie_replays", "", counter, 0, count},
      {metric::AerCorrectable, "aer_correctable", "", counter, 0, count},
      {metric::AerNonfatal, "aer_nonfatal", "", counter, 0, count},
      {metric::AerFatal, "aer_fatal", "", counter, 0, count},
      {metric::PcieTxRate, "pcie_tx_rate", "B/s", gauge, 0, big},
      {metric::PcieRxRate, "pcie_rx_rate", "B/s", gauge, 0, big},
      {metric::PortState, "port_state", "", state, 0, 1},
      {metric::PortSpeed, "port_speed", "Mbit/s", gauge, 0, 10000000},
      {metric::PortUps, "port_ups", "", counter, 0, count},
      {metric::PortDowns, "port_downs", "", counter, 0, count},
      {metric::NetworkHealth, "network_health", "", state, 0, 255},
      {metric::FecMode, "fec_mode", "", state, 0, 1},
      {metric::AddressConfigured, "address_configured", "", state, 0, 1},
      {metric::PortTxRate, "port_tx_rate", "B/s", gauge, 0, big},
      {metric::PortRxRate, "port_rx_rate", "B/s", gauge, 0, big},
      {metric::PortRxFcsErrors, "port_rx_fcs_errors", "", counter, 0, big},
      {metric::PortTxBadPackets, "port_tx_bad_packets", "", counter, 0, big},
      {metric::PortRxBadPackets, "port_rx_bad_packets", "", counter, 0, big},
      {metric::PortTxPfc, "port_tx_pfc", "", counter, 0, big},
      {metric::PortRxPfc, "port_rx_pfc", "", counter, 0, big},
      {metric::RoceTxPackets, "roce_tx_packets", "", counter, 0, big},
      {metric::RoceRxPackets, "roce_rx_packets", "", counter, 0, big},
      {metric::RoceTxErrors, "roce_tx_errors", "", counter, 0, big},
      {metric::RoceRxErrors, "roce_rx_errors", "", counter, 0, big},
      {metric::RoceTxCnp, "roce_tx_cnp", "", counter, 0, big},
      {metric::RoceRxCnp, "roce_rx_cnp", "", counter, 0, big},
      {metric::RoceRetries, "roce_retries", "", counter, 0, big},
      {metric::RoceOutOfOrder, "roce_out_of_order", "", counter, 0, big},
      {metric::RoceVerificationErrors, "roce_verification_errors", "", counter, 0, big},
      {metric::RoceQpErrors, "roce_qp_errors", "", counter, 0, big},
      {metric::RoceUnexpectedAcks, "roce_unexpected_acks", "", counter, 0, big},
      {metric::OpticalPresent, "optical_present", "", state, 0, 1},
      {metric::OpticalTemperature, "optical_temperature", "C", gauge, -60, 250},
      {metric::OpticalVoltage, "optical_voltage", "mV", gauge, 0, 10000},
      {metric::OpticalTxPower, "optical_tx_power", "mW", gauge, 0, 1000},
      {metric::OpticalRxPower, "optical_rx_power", "mW", gauge, 0, 1000},
      {metric::OpticalTxBias, "optical_tx_bias", "mA", gauge, 0, 10000},
      {metric::OpticalHostSnr, "optical_host_snr", "dB", gauge, 0, 100},
      {metric::OpticalMediaSnr, "optical_media_snr", "dB", gauge, 0, 100},
      {metric::OpticalTxLos, "optical_tx_los", "", state, 0, 65535},
      {metric::OpticalRxLos, "optical_rx_los", "", state, 0, 65535},
      {metric::OpticalTxLol, "optical_tx_lol", "", state, 0, 65535},
      {metric::OpticalRxLol, "optical_rx_lol", "", state, 0, 65535},
      {metric::Health, "health", "", state, 0, 3},
      {metric::Compatibility, "compatibility", "", state, 1, 3},
      {metric::BootStatus, "boot_status", "", state, 0, 255},
      {metric::RecoveryAction, "recovery_action", "", state, 0, 255},
      {metric::PersistenceMode, "persistence_mode", "", state, 0, 1},
      {metric::ProcessCount, "process_count", "", gauge, 0, 1000000},
      {metric::ProcessMemory, "process_memory", "B", gauge, 0, big},
      {metric::DriverHangMs, "driver_hang_ms", "ms", gauge, 0, big},
      {metric::DriverCallMs, "driver_call_ms", "ms", gauge, 0, big},
      {metric::NodeCpuUtilization, "node_cpu_utilization", "%", gauge, 0, 100},
      {metric::NodeLoad1, "node_load1", "", gauge, 0, 1000000},
      {metric::NodeMemoryTotal, "node_memory_total", "B", gauge, 0, big},
      {metric::NodeMemoryAvailable, "node_memory_available", "B", gauge, 0, big},
      {metric::NodeDevicesExpected, "node_devices_expected", "", gauge, 0, 1000000},
      {metric::NodeDevicesFound, "node_devices_found", "", gauge, 0, 1000000},
      {metric::NodePciDevicesFound, "node_pci_devices_found", "", gauge, 0, 1000000},
      {metric::NodeBlockedProcesses, "node_blocked_processes", "", gauge, 0, 1000000},
      {metric::NodeEccCorrected, "node_ecc_corrected", "", counter, 0, big},
      {metric::NodeEccUncorrected, "node_ecc_uncorrected", "", counter, 0, big},
  }};
}

constexpr auto metric_table = make_metric_table();

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < metric_table.size(); ++i)
    if (static_cast<std::size_t>(metric_table[i].id) != i) return false;
  return true;
}
static_assert(rows_are_in_order(), "a row for every metric of messages/hw_metric.fbs, in its order");

}  // namespace

const metric_info& info(metric id) {
  const auto row = static_cast<std::size_t>(id);
  return metric_table[row < metric_table.size() ? row : 0];
}

std::optional<metric> find_metric(std::string_view name) {
  for (const auto& row : metric_table)
    if (row.id != metric::Unknown && row.name == name) return row.id;
  return std::nullopt;
}

bool is_valid(metric id, double value) {
  const auto& row = info(id);
  return std::isfinite(value) && value >= row.least && value <= row.most;
}

}  // namespace infernex::monitor
