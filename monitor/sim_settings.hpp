#pragma once

#include <cstdint>
#include <string>

namespace infernex::monitor {

/// A simulated fleet.
struct sim_settings {
  std::uint32_t nodes = 1;
  std::uint32_t devices = 8;  // a node
  /// A key of sim_models(), or `mixed`: every second node of the other kind.
  std::string model = "ascend-910b";
  /// Nodes are called <prefix><number>.
  std::string node_prefix = "sim-";
  std::uint64_t seed = 0;
  std::uint32_t period_ms = 1000;
  /// The clock of the nodes at the start, nanoseconds since 1970; a time of day for the load and the room.
  std::uint64_t start_ns = 1'700'000'000'000'000'000;
  /// Failed reads, spikes, short gaps, errors of applications, corrected errors, reloads: what a rule must bear.
  bool incidents = true;
};

}  // namespace infernex::monitor
