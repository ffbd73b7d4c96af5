#pragma once

#include <string>
#include <vector>

#include "monitor/sim_node.hpp"

namespace infernex::monitor {

/// All nodes of a simulated fleet, step by step together. Who wants one node's days at once runs a sim_node alone.
class sim_fleet {
 public:
  /// Errors: invalid_request, naming the first fault that cannot happen here, or the model.
  static result<sim_fleet> make(const sim_settings& settings, const std::vector<sim_fault>& faults);

  void step();
  const std::vector<sim_node>& nodes() const { return nodes_; }
  /// A fault from now on. Errors: invalid_request.
  error inject(const sim_fault& fault);
  /// Of all nodes, in the order of their time.
  std::vector<sim_truth> truths() const;

 private:
  sim_fleet() = default;
  sim_settings settings_;
  std::vector<sim_node> nodes_;
};

}  // namespace infernex::monitor
