#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "monitor/sim_device.hpp"
#include "monitor/sim_effects.hpp"
#include "monitor/sim_fault.hpp"
#include "monitor/sim_incidents.hpp"
#include "monitor/sim_journal.hpp"
#include "monitor/sim_load.hpp"
#include "monitor/sim_settings.hpp"

namespace infernex::monitor {

/// A node of a simulated fleet, in virtual time. Nodes share nothing: each can be run on a thread of its own.
class sim_node {
 public:
  /// `faults`: those of this node, in any order. Precondition: find_sim_fault_mistake() has found none.
  sim_node(const sim_settings& settings, std::uint32_t number, const std::vector<sim_fault>& faults);

  /// Advances by one period; the first step is at 0.
  void step();
  std::uint64_t now_ms() const { return now_ms_; }
  std::uint64_t time_ns() const { return settings_.start_ns + now_ms_ * 1'000'000; }

  const std::string& name() const { return sample_.node; }
  /// Nothing comes from this node now: neither samples nor events.
  bool silent() const { return silent_; }
  /// Of this step. A device that is silent is not in it.
  const node_sample& sample() const { return sample_; }
  const std::vector<hw_event>& events() const { return journal_.events(); }
  /// Since the step before; also after the first step.
  bool inventory_changed() const { return inventory_changed_; }
  hw_inventory inventory() const;
  const std::vector<sim_truth>& truths() const { return truths_; }
  const std::vector<sim_device>& devices() const { return devices_; }
  /// A fault from now on, beside those of the plan. Precondition as for the constructor's.
  void inject(sim_fault fault);

 private:
  struct active_fault {
    std::size_t truth = 0;
    sim_progress progress;
  };
  void make_devices(std::uint32_t number);
  void step_room();
  void step_faults();
  void step_fault(active_fault& one, bool over);
  void share_load();
  void read();
  void read_node(std::size_t found);

  sim_settings settings_;
  sim_random random_;
  sim_journal journal_;
  const sim_model* model_;
  std::vector<sim_device> devices_;
  std::vector<sim_incidents> incidents_;
  std::vector<std::uint32_t> group_of_;
  std::vector<sim_group_load> groups_;
  std::vector<sim_truth> truths_;
  std::vector<active_fault> active_;
  std::size_t next_truth_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t now_ms_ = 0;
  double share_ = 0;
  double room_ = 0;
  double room_offset_ = 0;
  double room_wander_ = 0;
  bool silent_ = false;
  bool inventory_changed_ = false;
  node_sample sample_;
};

/// What is wrong with a fault for this fleet, in words: no such node or device, or it cannot happen to that kind.
/// Empty: nothing.
std::string find_sim_fault_mistake(const sim_settings& settings, const sim_fault& fault);

/// The model of a node. Precondition: `settings.model` is a key of sim_models(), or `mixed`.
const sim_model& sim_model_of(const sim_settings& settings, std::uint32_t node);

}  // namespace infernex::monitor
