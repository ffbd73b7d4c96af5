#include <algorithm>

#include "monitor/sim_effects.hpp"

// Faults of what a device is connected by: its network port, its links to other devices, PCIe.
namespace infernex::monitor {

namespace {

constexpr std::uint64_t link_down_code = 0x81078603;

void set_port(sim_scene& at, bool up) {
  auto& d = at.device;
  if (d.condition.port_up == up) return;
  d.condition.port_up = up;
  d.condition.network_health = up ? 0 : 3;
  (up ? d.counts.port_ups : d.counts.port_downs) += 1;
  if (at.ascend())
    at.journal.code(d, link_down_code, up ? fb::HwAssertion::Cleared : fb::HwAssertion::Raised, fb::HwLevel::Minor);
  else
    at.journal.port(d, up);
}

/// Down and up again; it counts as flapping after five times within a day at an Ascend (rule 7), and at NVIDIA after
/// three of at least 25 s within 12 hours (rule 37).
void flap(sim_scene& at) {
  const auto seconds = [&at](std::uint32_t from, std::uint32_t to) {
    return 1000ULL * (from + at.random.below(to - from));
  };
  if (at.now_ms < at.progress.next_ms) return;
  if (at.device.condition.port_up) {
    set_port(at, false);
    at.progress.next_ms = at.now_ms + (at.ascend() ? seconds(2, 15) : seconds(27, 60));
    if (++at.progress.count == 5 && at.ascend()) at.show();
  } else {
    set_port(at, true);
    at.progress.next_ms = at.now_ms + (at.ascend() ? seconds(20, 120) : seconds(60, 300));
    if (at.progress.count == 3 && !at.ascend()) at.show();
  }
}

/// Strength 1: 200 CRC errors a second, and replays; from 1 on the link goes down after half a minute.
void link_errors(sim_scene& at) {
  auto& d = at.device;
  if (at.progress.count++ == 0) at.journal.xid(d, 74, "NVLink: fatal error detected on link 1(0x10000, 0x0, 0x0, 0x0)");
  d.counts.link_crc += static_cast<double>(at.random.below(100) + 150) * at.strength() * at.seconds;
  d.counts.link_replays += at.random.below(3);
  if (at.strength() >= 1 && at.since_ms() >= 30'000 && d.condition.links_down == 0) {
    d.condition.links_down = 2;
    d.counts.link_recoveries += 1;
  }
  at.show();
}

/// Strength: times the rate at which replays are too many (1.92 a minute and lane at generation 5, rule 28).
void pcie_errors(sim_scene& at) {
  auto& d = at.device;
  at.progress.carry += at.strength() * 1.92 * d.condition.pcie_width / 60 * at.seconds;
  const double whole = static_cast<double>(static_cast<std::uint64_t>(at.progress.carry));
  d.counts.pcie_replays += whole;
  at.progress.carry -= whole;
  at.show();
}

/// Strength 0.2: a weak lane (rule 12's warning); from 0.6 on below its alarm.
void dim_lane(sim_scene& at) {
  const double milliwatts = at.strength() < 0.6 ? 0.3 + 0.1 * at.random.uniform() : 0.05 + 0.05 * at.random.uniform();
  auto& lane = at.device.condition.rx_milliwatts[1];
  if (at.progress.count++ == 0) at.progress.carry = lane;
  if (at.progress.count == 1) lane = milliwatts;
  at.show();
}

}  // namespace

bool continue_link_fault(sim_scene& at) {
  auto& d = at.device;
  switch (at.truth.fault.kind) {
    case fault_kind::link_flap:
      flap(at);
      return true;
    case fault_kind::port_down:
      set_port(at, false);
      break;
    case fault_kind::link_errors:
      link_errors(at);
      return true;
    case fault_kind::pcie_signal:
      pcie_errors(at);
      return true;
    case fault_kind::optical_module:
      dim_lane(at);
      return true;
    case fault_kind::network_misconfigured:
      d.condition.fec = false;
      d.condition.network_health = 3;
      break;
    default:
      return false;
  }
  at.show();
  return true;
}

bool end_link_fault(sim_scene& at) {
  auto& d = at.device;
  switch (at.truth.fault.kind) {
    case fault_kind::link_flap:
    case fault_kind::port_down:
      set_port(at, true);
      return true;
    case fault_kind::link_errors:
      d.condition.links_down = 0;
      d.reset();
      at.journal.add(d, fb::HwEventKind::DeviceReset, fb::HwSource::Host);
      return true;
    case fault_kind::pcie_signal:
      return true;
    case fault_kind::optical_module:
      d.condition.rx_milliwatts[1] = at.progress.carry;
      return true;
    case fault_kind::network_misconfigured:
      d.condition.fec = true;
      d.condition.network_health = 0;
      return true;
    default:
      return false;
  }
}

}  // namespace infernex::monitor
