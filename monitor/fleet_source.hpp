#pragma once

#include "monitor/sim_fleet.hpp"
#include "monitor/source.hpp"

namespace infernex::monitor {

/// A simulated fleet in place of devices: one step of it a poll, with the time of the poll.
class fleet_source final : public report_source {
 public:
  explicit fleet_source(sim_fleet fleet) : fleet_(std::move(fleet)) {}
  void poll(const poll_time& now, const std::function<void(node_report&&)>& each) override;
  /// A fault from now on. Errors: invalid_request.
  error inject(const sim_fault& fault) { return fleet_.inject(fault); }
  const sim_fleet& fleet() const { return fleet_; }

 private:
  sim_fleet fleet_;
  node_sample stamped_;
  std::uint64_t polls_ = 0;
};

}  // namespace infernex::monitor
