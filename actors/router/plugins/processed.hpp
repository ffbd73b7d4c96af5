#pragma once

#include <cstdint>
#include <vector>

#include "actors/router/topology.hpp"

namespace infernex::router::plugins {

/// How many requests this plugin has sent to each engine, for ties. One counter a slot of the load board.
class processed_counts {
 public:
  std::uint64_t of(slot_ref slot) const {
    if (slot.index >= counts_.size() || counts_[slot.index].generation != slot.generation) return 0;
    return counts_[slot.index].requests;
  }
  void add(slot_ref slot) {
    if (slot.index >= counts_.size()) counts_.resize(slot.index + 1);
    auto& one = counts_[slot.index];
    if (one.generation != slot.generation) one = {slot.generation, 0};
    ++one.requests;
  }

 private:
  struct count {
    std::uint32_t generation = 0;
    std::uint64_t requests = 0;
  };
  std::vector<count> counts_;
};

}  // namespace infernex::router::plugins
