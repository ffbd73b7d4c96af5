#pragma once

#include <cstdint>

#include "monitor/sim_device.hpp"
#include "monitor/sim_fault.hpp"
#include "monitor/sim_journal.hpp"

namespace infernex::monitor {

/// How far a fault has come.
struct sim_progress {
  bool begun = false;
  std::uint64_t next_ms = 0;
  std::uint32_t count = 0;
  double carry = 0;
};

/// A fault at work: what it may touch in one step.
struct sim_scene {
  sim_device& device;
  sim_truth& truth;
  sim_progress& progress;
  sim_random& random;
  sim_journal& journal;
  std::uint64_t now_ms = 0;
  double seconds = 0;
  /// Set when the device's entry in the inventory changed.
  bool& inventory_changed;

  bool ascend() const { return device.model->vendor == fb::HwVendor::Ascend; }
  double strength() const { return truth.fault.strength; }
  std::uint64_t since_ms() const { return now_ms - truth.fault.at_ms; }
  void show() {
    if (!truth.visible_ms) truth.visible_ms = now_ms;
  }
};

// By area: each returns false if the fault is of another.
bool begin_memory_fault(sim_scene& at);
bool continue_memory_fault(sim_scene& at);
bool end_memory_fault(sim_scene& at);
bool continue_link_fault(sim_scene& at);
bool end_link_fault(sim_scene& at);

/// Once, in its first step; then in every step before the device's own; once when its time is over.
void begin_fault(sim_scene& at);
void continue_fault(sim_scene& at);
void end_fault(sim_scene& at);

}  // namespace infernex::monitor
