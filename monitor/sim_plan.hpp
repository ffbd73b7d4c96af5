#pragma once

#include <cstdint>
#include <vector>

#include "actors/runtime/config.hpp"
#include "monitor/sim_fault.hpp"
#include "monitor/sim_settings.hpp"

namespace infernex::monitor {

/// Reads a script: a mapping whose `faults` is a list of
///   {at: 60s, node: 0, device: 3, fault: thermal-throttling, for: 10m, strength: 1, code: 0x80E01801}
/// (`for` and `strength` default to what is usual for the fault). Mistakes become problems of the file.
std::vector<sim_fault> read_sim_plan(config::section at, const sim_settings& settings);

struct sim_plan_shape {
  std::uint64_t horizon_ms = 24 * 3'600'000;
  /// So many of each kind (but `code`) at each vendor of the fleet.
  std::uint32_t of_each = 1;
  /// Nothing before, so that what learns has something to learn from.
  std::uint64_t quiet_ms = 3'600'000;
  /// Between two faults of a node.
  std::uint64_t apart_ms = 3'600'000;
};

/// Faults drawn by a seed, none while another is at the same node. Fewer than asked for where they do not fit.
std::vector<sim_fault> draw_sim_plan(const sim_settings& settings, std::uint64_t seed, const sim_plan_shape& shape);

}  // namespace infernex::monitor
