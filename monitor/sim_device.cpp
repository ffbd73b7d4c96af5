#include "monitor/sim_device.hpp"

#include <algorithm>
#include <cmath>

namespace infernex::monitor {

namespace {

/// The clock, as a share of the rated, at which the die settles just above where it slows down.
double clock_when_hot(const sim_device& device, double inlet, double dynamic_watts) {
  const auto& model = *device.model;
  const double resistance = model.resistance * device.traits.resistance * device.influence.resistance;
  const double allowed = (model.slowdown_celsius + 1.5 - inlet - model.base_celsius) / resistance - model.idle_watts;
  if (dynamic_watts <= 0 || allowed >= dynamic_watts) return 1;
  // Power goes with the clock's power of 1.5.
  const double share = std::cbrt(std::max(allowed / dynamic_watts, 0.02));
  return std::clamp(share * share, 0.3, 1.0);
}

}  // namespace

void sim_device::step(double inlet, double group_load, double seconds, double share, sim_random& random) {
  const auto& m = *model;
  load = std::max(group_load, influence.least_load);
  const double busy = load < 0.01 ? 0 : std::clamp(load + 0.02 * random.noise(), 0.01, 1.0);
  utilization = influence.stalled ? 100 : 100 * busy;
  bandwidth = influence.stalled || busy == 0 ? 0 : std::clamp(100 * busy * 0.7 + 3 * random.noise(), 0.5, 98.0);

  const double range = (m.most_watts - m.idle_watts) * traits.power;
  const double wanted = influence.stalled ? 0.04 * range : range * busy * (0.85 + 0.13 * busy);
  const double own_inlet = inlet + influence.inlet;
  double target = influence.clock_cap;
  const bool hot = celsius >= m.slowdown_celsius - 0.5 || throttled;
  const double cool_clock = hot ? clock_when_hot(*this, own_inlet, wanted) : 1.0;
  throttled = hot && cool_clock < 0.995;
  if (throttled) target = std::min(target, cool_clock);
  double most = range;
  power_capped = wanted > 0.97 * most && target >= 1;
  clock = target;
  const double dynamic = std::min(wanted, most) * clock * std::sqrt(clock);
  watts = std::max(1.0, m.idle_watts + dynamic + (dynamic > 1 ? 0.012 * range : 0.4) * random.noise());

  const double settles =
      own_inlet + m.base_celsius + m.resistance * traits.resistance * influence.resistance * (m.idle_watts + dynamic);
  celsius += (settles - celsius) * share;
  const double memory_settles = own_inlet + m.memory_base_celsius +
                                m.memory_resistance * influence.resistance * (m.idle_watts + dynamic) +
                                0.05 * bandwidth;
  memory_celsius += (memory_settles - memory_celsius) * share;

  if (throttled) counts.thermal_seconds += seconds;
  if (power_capped) counts.power_cap_seconds += seconds;
  if (influence.brake) counts.brake_seconds += seconds;
  if (condition.port_up) counts.roce_packets += std::floor(busy * 400'000 * seconds);
}

void sim_device::reset() {
  counts.ecc_single = 0;
  counts.ecc_double = 0;
  counts.pages_double += counts.pages_pending;
  counts.pages_pending = 0;
  counts.pcie_replays = 0;
  counts.link_crc = 0;
  counts.link_replays = 0;
  counts.link_recoveries = 0;
  counts.hccs_crc = 0;
  counts.port_ups = 1;
  counts.port_downs = 0;
  counts.roce_packets = 0;
  counts.roce_retries = 0;
  counts.thermal_seconds = 0;
  counts.power_cap_seconds = 0;
  counts.brake_seconds = 0;
  condition.row_pending = false;
  condition.recovery_action = 0;
}

void sim_device::replace(sim_random& random) {
  static constexpr char digits[] = "0123456789ABCDEF";
  const bool ascend = model->vendor == fb::HwVendor::Ascend;
  const auto hex = [&random](std::size_t count) {
    std::string text;
    while (text.size() < count) text += digits[random.below(16)];
    return text;
  };
  id = ascend ? hex(8) + "-" + hex(8) + "-" + hex(8) + "-" + hex(8) + "-" + hex(8)
              : "GPU-" + hex(8) + "-" + hex(4) + "-" + hex(4) + "-" + hex(4) + "-" + hex(12);
  serial = hex(12);
  // Chips differ; a few are twice as far off as most.
  traits.resistance = 1 + 0.04 * random.noise();
  traits.power = 1 + 0.025 * random.noise();
  traits.sensor_offset = 0.8 * random.noise();
  traits.single_bit_errors_a_day = random.below(4) == 0 ? random.uniform(0.5, 4) : 0.1;
  counts = {};
  // Some have a past that they are healthy with.
  if (random.below(5) == 0) {
    counts.ecc_single_lifetime = random.below(3000);
    counts.ecc_double_lifetime = random.below(20);
    counts.pages_single = random.below(30);
    counts.pages_double = ascend ? random.below(12) : 0;
    counts.rows_correctable = ascend ? 0 : random.below(4);
  }
  condition = {};
  for (auto& lane : condition.tx_milliwatts) lane = random.uniform(0.9, 1.6);
  for (auto& lane : condition.rx_milliwatts) lane = random.uniform(0.75, 1.3);
  codes.clear();
}

}  // namespace infernex::monitor
