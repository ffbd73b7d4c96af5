#pragma once

#include <cstdint>

#include "monitor/sim_random.hpp"

namespace infernex::monitor {

/// The work of the devices that serve one model together: around a level that jumps every few minutes, as serving's
/// does, sometimes none, by day more than by night.
class sim_group_load {
 public:
  sim_group_load(std::uint32_t period_ms, sim_random& random);
  void step(std::uint64_t now_ms, double hour, sim_random& random);
  /// 0..1.
  double load() const { return load_; }
  /// 0 while the service is restarted.
  int processes() const { return processes_; }

 private:
  double follow_;  // share of the way to the level, a step
  double shake_;
  double level_ = 0;
  double load_ = 0;
  int processes_ = 1;
  std::uint64_t next_ms_ = 0;
};

}  // namespace infernex::monitor
