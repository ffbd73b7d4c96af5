#include "monitor/sim_effects.hpp"

#include <algorithm>

namespace infernex::monitor {

namespace {

constexpr std::uint64_t drop_code = 0x40F84E00;
constexpr std::uint64_t hot_code = 0x80E20207;  // SoC too warm, not fatal
constexpr std::uint64_t power_supply_code = 0x80E3A201;

double ramp(const sim_scene& at, double over_ms) { return std::min(1.0, static_cast<double>(at.since_ms()) / over_ms); }

/// Strength 1: heat leaves 2.6 times as badly, within two minutes. Shows when the clock falls.
void block_airflow(sim_scene& at) {
  auto& d = at.device;
  d.influence.resistance = 1 + 1.6 * at.strength() * ramp(at, 120'000);
  d.influence.least_load = 0.9;
  if (!d.throttled) return;
  if (at.ascend() && !at.truth.visible_ms) at.journal.code(d, hot_code, fb::HwAssertion::Raised, fb::HwLevel::Minor);
  at.show();
}

/// Strength: by how much the clock is cut.
void brake(sim_scene& at) {
  auto& d = at.device;
  d.influence.brake = true;
  d.influence.clock_cap = 1 - at.strength();
  d.influence.least_load = 0.6;
  if (at.progress.count++ == 0 && at.ascend())
    at.journal.code(d, power_supply_code, fb::HwAssertion::Raised, fb::HwLevel::Major);
  at.show();
}

/// The driver takes 5 s to be sure (reference, 1.2).
void drop_card(sim_scene& at) {
  auto& d = at.device;
  d.influence.dropped = true;
  if (at.progress.count == 0) {
    at.progress.count = 1;
    if (at.ascend())
      at.journal.add(d, fb::HwEventKind::HeartbeatLost, fb::HwSource::KernelLog).level = fb::HwLevel::Critical;
    else
      at.journal.xid(d, 79, "GPU has fallen off the bus.");
  }
  if (at.progress.count == 1 && at.since_ms() >= 5000) {
    at.progress.count = 2;
    d.condition.present = false;
    at.inventory_changed = true;
    if (at.ascend()) at.journal.code(d, drop_code, fb::HwAssertion::Raised, fb::HwLevel::Critical);
    auto& event = at.journal.add(d, fb::HwEventKind::CardDrop, at.ascend() ? fb::HwSource::Dcmi : fb::HwSource::Nvml);
    event.assertion = fb::HwAssertion::Raised;
    event.level = fb::HwLevel::Critical;
  }
  at.show();
}

void return_card(sim_scene& at) {
  auto& d = at.device;
  if (at.ascend()) at.journal.code(d, drop_code, fb::HwAssertion::Cleared, fb::HwLevel::Critical);
  d.condition.present = true;
  d.reset();
  at.inventory_changed = true;
  auto& event = at.journal.add(d, fb::HwEventKind::CardDrop, at.ascend() ? fb::HwSource::Dcmi : fb::HwSource::Nvml);
  event.assertion = fb::HwAssertion::Cleared;
  at.journal.add(d, fb::HwEventKind::CardReturn, fb::HwSource::Host);
}

/// Strength 1: the air that reaches it is 11 degrees warmer, within two minutes.
void warm_inlet(sim_scene& at) {
  at.device.influence.inlet = 11 * at.strength() * ramp(at, 120'000);
  at.device.influence.least_load = 0.5;
  if (at.device.influence.inlet >= 8) at.show();
}

/// Strength 1: at its end heat leaves 70 % worse. Shows from 5 degrees more than it would be on.
void wear_paste(sim_scene& at) {
  auto& d = at.device;
  d.influence.resistance = 1 + 0.7 * at.strength() * ramp(at, static_cast<double>(at.truth.fault.for_ms));
  d.influence.least_load = 0.5;
  if ((d.influence.resistance - 1) * d.model->resistance * d.watts >= 5) at.show();
}

void hang_driver(sim_scene& at) {
  const auto since = static_cast<std::uint32_t>(at.since_ms());
  at.device.influence.hang_ms = std::max(1U, since);
  if (since >= 5000 && at.progress.count++ == 0) {
    auto& event =
        at.journal.add(at.device, fb::HwEventKind::DriverHang, at.ascend() ? fb::HwSource::Dcmi : fb::HwSource::Nvml);
    event.code = since;
    event.assertion = fb::HwAssertion::Raised;
  }
  at.show();
}

void refuse_calls(sim_scene& at) {
  auto& d = at.device;
  if (at.ascend()) {
    d.condition.compatibility = 2;
    at.inventory_changed = at.inventory_changed || at.progress.count == 0;
  } else {
    d.influence.mismatched = true;
    if (at.progress.count == 0) {
      auto& event = at.journal.add(d, fb::HwEventKind::DriverError, fb::HwSource::Nvml);
      event.code = 18;
      event.assertion = fb::HwAssertion::Raised;
    }
  }
  ++at.progress.count;
  at.show();
}

void one_code(sim_scene& at) {
  if (at.progress.count++ != 0) return;
  const auto number = at.truth.fault.number;
  if (at.ascend())
    at.journal.code(at.device, number, fb::HwAssertion::Raised, fb::HwLevel::Major);
  else
    at.journal.xid(at.device, static_cast<std::uint32_t>(number), "scripted");
  at.show();
}

}  // namespace

void begin_fault(sim_scene& at) {
  if (begin_memory_fault(at) || at.truth.fault.kind != fault_kind::driver_fault) return;
  at.journal.xid(at.device, 119, "Timeout after 6s of waiting for RPC response from GPU0 GSP!");
  at.device.condition.recovery_action = 1;
  at.show();
}

void continue_fault(sim_scene& at) {
  if (continue_memory_fault(at) || continue_link_fault(at)) return;
  switch (at.truth.fault.kind) {
    case fault_kind::thermal_throttling:
      return block_airflow(at);
    case fault_kind::power_brake:
      return brake(at);
    case fault_kind::card_drop:
      return drop_card(at);
    case fault_kind::hang:
      at.device.influence.stalled = true;
      at.device.processes = 1;
      return at.show();
    case fault_kind::driver_mismatch:
      return refuse_calls(at);
    case fault_kind::silent_telemetry:
    case fault_kind::silent_node:
      at.device.influence.silent = true;
      return at.show();
    case fault_kind::hot_neighbour:
      return warm_inlet(at);
    case fault_kind::slow_drift:
      return wear_paste(at);
    case fault_kind::driver_hang:
      return hang_driver(at);
    case fault_kind::code:
      return one_code(at);
    default:
      return;
  }
}

void end_fault(sim_scene& at) {
  at.truth.ended_ms = at.now_ms;
  if (end_memory_fault(at) || end_link_fault(at)) return;
  auto& d = at.device;
  const auto clear = [&at, &d](std::uint64_t code, fb::HwLevel level) {
    at.journal.code(d, code, fb::HwAssertion::Cleared, level);
  };
  const auto over = [&at, &d](fb::HwEventKind kind) -> hw_event& {
    auto& event = at.journal.add(d, kind, at.ascend() ? fb::HwSource::Dcmi : fb::HwSource::Nvml);
    event.assertion = fb::HwAssertion::Cleared;
    return event;
  };
  switch (at.truth.fault.kind) {
    case fault_kind::thermal_throttling:
      return clear(hot_code, fb::HwLevel::Minor);
    case fault_kind::power_brake:
      return clear(power_supply_code, fb::HwLevel::Major);
    case fault_kind::card_drop:
      return return_card(at);
    case fault_kind::driver_hang:
      over(fb::HwEventKind::DriverHang);
      return;
    case fault_kind::driver_mismatch:
      if (at.ascend()) {
        d.condition.compatibility = 1;
        at.inventory_changed = true;
      } else {
        over(fb::HwEventKind::DriverError).code = 18;
      }
      return;
    case fault_kind::driver_fault:
      d.reset();
      at.journal.add(d, fb::HwEventKind::DeviceReset, fb::HwSource::Host);
      return;
    case fault_kind::code:
      if (at.ascend()) clear(at.truth.fault.number, fb::HwLevel::Major);
      return;
    default:
      return;
  }
}

}  // namespace infernex::monitor
