#include "monitor/sim_incidents.hpp"

#include <array>

namespace infernex::monitor {

namespace {

// How often a day, of one device. Corrected ECC errors are a trait of the device.
constexpr double failed_reads = 6;
constexpr double spikes = 0.3;
constexpr double gaps = 0.2;
constexpr double stalls = 2;
constexpr double slow_clocks = 0.5;
constexpr double minor_codes = 0.05;
constexpr double port_blips = 0.02;
constexpr double applications = 0.05;
constexpr double signals = 3;
constexpr double reloads = 0.01;
constexpr double all_but_corrected =
    failed_reads + spikes + gaps + stalls + slow_clocks + minor_codes + port_blips + applications + signals + reloads;
constexpr double day_ms = 86'400'000;
constexpr std::uint64_t overcurrent_hint = 0x80E21007;  // "no action required"
constexpr std::uint64_t port_down_code = 0x81078603;

}  // namespace

sim_incidents::kind sim_incidents::draw(const sim_device& device, sim_random& random) {
  const std::array<std::pair<kind, double>, 11> weights{{{kind::failed_read, failed_reads},
                                                         {kind::spike, spikes},
                                                         {kind::gap, gaps},
                                                         {kind::stall, stalls},
                                                         {kind::slow_clock, slow_clocks},
                                                         {kind::minor_code, minor_codes},
                                                         {kind::port_blip, port_blips},
                                                         {kind::application, applications},
                                                         {kind::signal, signals},
                                                         {kind::reload, reloads},
                                                         {kind::corrected, device.traits.single_bit_errors_a_day}}};
  double rest = random.uniform(0, all_but_corrected + device.traits.single_bit_errors_a_day);
  for (const auto& [what, weight] : weights)
    if ((rest -= weight) < 0) return what;
  return kind::failed_read;
}

void sim_incidents::begin(kind what, sim_device& device, std::uint64_t now_ms, sim_random& random,
                          sim_journal& journal) {
  const bool ascend = device.model->vendor == fb::HwVendor::Ascend;
  now_ = what;
  until_ms_ = now_ms;
  switch (what) {
    case kind::gap:
      until_ms_ += 500 + random.below(2500);
      break;
    case kind::stall:
      until_ms_ += 5000 + random.below(20'000);
      break;
    case kind::slow_clock:
      until_ms_ += random.below(1500);
      break;
    case kind::minor_code:
      until_ms_ += 3000;
      if (ascend) journal.code(device, overcurrent_hint, fb::HwAssertion::Raised, fb::HwLevel::Minor);
      break;
    case kind::port_blip:
      until_ms_ += 2000 + random.below(6000);
      device.condition.port_up = false;
      device.counts.port_downs += 1;
      if (ascend)
        journal.code(device, port_down_code, fb::HwAssertion::Raised, fb::HwLevel::Minor);
      else
        journal.port(device, false);
      break;
    case kind::application:
      if (ascend) break;
      if (random.below(2) == 0)
        journal.xid(device, 31, "Ch 00000008, intr 00000000. MMU Fault", 1000 + random.below(30'000));
      else
        journal.xid(device, 43, "Ch 00000018", 1000 + random.below(30'000));
      break;
    case kind::corrected:
      device.counts.ecc_single += 1;
      device.counts.ecc_single_lifetime += 1;
      break;
    case kind::signal:
      device.counts.pcie_replays += 1;
      device.counts.link_crc += random.below(3);
      device.counts.hccs_crc += random.below(2);
      device.counts.roce_retries += random.below(20);
      break;
    case kind::reload:
      device.reset();
      journal.add(device, fb::HwEventKind::DriverReload, fb::HwSource::Host);
      break;
    default:
      break;
  }
}

void sim_incidents::end(sim_device& device, sim_journal& journal) {
  const bool ascend = device.model->vendor == fb::HwVendor::Ascend;
  if (now_ == kind::minor_code && ascend)
    journal.code(device, overcurrent_hint, fb::HwAssertion::Cleared, fb::HwLevel::Minor);
  if (now_ == kind::port_blip) {
    device.condition.port_up = true;
    device.counts.port_ups += 1;
    if (ascend)
      journal.code(device, port_down_code, fb::HwAssertion::Cleared, fb::HwLevel::Minor);
    else
      journal.port(device, true);
  }
  now_ = kind::none;
}

void sim_incidents::step(sim_device& device, std::uint64_t now_ms, sim_random& random, sim_journal& journal) {
  if (now_ == kind::none && now_ms < next_ms_) return;
  if (now_ == kind::none) {
    const double mean_ms = day_ms / (all_but_corrected + device.traits.single_bit_errors_a_day);
    next_ms_ = now_ms + static_cast<std::uint64_t>(random.exponential(mean_ms));
    if (!begun_) {  // the first is not at the start
      begun_ = true;
      return;
    }
    begin(draw(device, random), device, now_ms, random, journal);
  } else if (now_ms > until_ms_) {
    end(device, journal);
    return;
  }
  auto& to = device.influence;
  to.read_failed = now_ == kind::failed_read;
  to.spike = now_ == kind::spike ? 12 : 0;
  to.silent = now_ == kind::gap;
  to.stalled = now_ == kind::stall;
  if (now_ == kind::slow_clock) to.clock_cap = 0.8;
}

}  // namespace infernex::monitor
