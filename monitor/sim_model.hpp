#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "messages/registry.hpp"

namespace infernex::monitor {

/// What all simulated devices of a kind have in common. Thermal model, first order: in steady state the die is at
/// inlet + base + resistance * power.
struct sim_model {
  /// In settings.
  std::string_view key;
  fb::HwVendor vendor = fb::HwVendor::Unknown;
  std::string_view name;
  std::string_view driver;
  std::string_view firmware;
  double idle_watts = 0;
  double most_watts = 0;
  double base_celsius = 0;
  double resistance = 0;  // C/W
  double memory_base_celsius = 0;
  double memory_resistance = 0;
  /// Seconds to 63 % of a step.
  double time_constant = 0;
  /// What a watt of the device upstream adds to the inlet of the one behind it.
  double coupling = 0;  // C/W
  double slowdown_celsius = 0;
  double rated_mhz = 0;
  double idle_mhz = 0;
  double memory_mhz = 0;
  std::uint64_t memory_bytes = 0;
  /// Links to other devices of the node.
  std::uint16_t links = 0;
};

/// `ascend-910b` and `nvidia-h100`. Their idle values are those of published tool outputs (reference, 1.4); what is not
/// public (rated clock and limits of a 910B) is made up, and rules must read it from the samples.
std::span<const sim_model> sim_models();

/// Null: there is none of this key.
const sim_model* find_sim_model(std::string_view key);

}  // namespace infernex::monitor
