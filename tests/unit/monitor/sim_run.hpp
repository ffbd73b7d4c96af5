#pragma once

#include <functional>
#include <string>
#include <vector>

#include "monitor/sim_node.hpp"

namespace infernex::monitor {

/// One simulated node with faults, run for a while.
struct sim_run {
  sim_settings settings;
  std::vector<sim_fault> faults;
  std::vector<hw_event> events;
  std::vector<hw_inventory> inventories;

  explicit sim_run(std::string model) {
    settings.model = std::move(model);
    settings.incidents = false;
    settings.seed = 11;
  }
  sim_run& with(fault_kind kind, std::uint32_t device, std::uint64_t at_s, std::uint64_t for_s, double strength = 1,
                std::uint64_t number = 0) {
    faults.push_back({kind, 0, device, at_s * 1000, for_s * 1000, strength, number});
    return *this;
  }
  /// `look` is called after each step.
  std::vector<sim_truth> go(std::uint64_t seconds, const std::function<void(const sim_node&, std::uint64_t)>& look) {
    sim_node node(settings, 0, faults);
    for (std::uint64_t s = 0; s <= seconds; s += settings.period_ms / 1000) {
      node.step();
      if (!node.silent()) events.insert(events.end(), node.events().begin(), node.events().end());
      if (node.inventory_changed()) inventories.push_back(node.inventory());
      look(node, s);
    }
    return node.truths();
  }
  std::size_t count(fb::HwEventKind kind, std::uint64_t code, fb::HwAssertion assertion) const {
    std::size_t n = 0;
    for (const auto& one : events) n += one.kind == kind && one.code == code && one.assertion == assertion;
    return n;
  }
  std::size_t xids(std::uint64_t number) const { return count(fb::HwEventKind::Xid, number, fb::HwAssertion::OneOff); }
};

}  // namespace infernex::monitor
