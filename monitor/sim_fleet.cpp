#include "monitor/sim_fleet.hpp"

#include <algorithm>

namespace infernex::monitor {

result<sim_fleet> sim_fleet::make(const sim_settings& settings, const std::vector<sim_fault>& faults) {
  if (settings.model != "mixed" && !find_sim_model(settings.model))
    return error{errc::invalid_request, "no simulated model \"" + settings.model + "\""};
  std::vector<std::vector<sim_fault>> of_node(settings.nodes);
  for (const auto& fault : faults) {
    if (auto mistake = find_sim_fault_mistake(settings, fault); !mistake.empty())
      return error{errc::invalid_request, "fault at " + std::to_string(fault.at_ms) + " ms: " + mistake};
    of_node[fault.node].push_back(fault);
  }
  sim_fleet fleet;
  fleet.settings_ = settings;
  fleet.nodes_.reserve(settings.nodes);
  for (std::uint32_t number = 0; number < settings.nodes; ++number)
    fleet.nodes_.emplace_back(settings, number, of_node[number]);
  return fleet;
}

void sim_fleet::step() {
  for (auto& node : nodes_) node.step();
}

error sim_fleet::inject(const sim_fault& fault) {
  if (auto mistake = find_sim_fault_mistake(settings_, fault); !mistake.empty())
    return {errc::invalid_request, std::move(mistake)};
  nodes_[fault.node].inject(fault);
  return {};
}

std::vector<sim_truth> sim_fleet::truths() const {
  std::vector<sim_truth> all;
  for (const auto& node : nodes_) all.insert(all.end(), node.truths().begin(), node.truths().end());
  std::ranges::stable_sort(all, {}, [](const sim_truth& one) { return one.fault.at_ms; });
  return all;
}

}  // namespace infernex::monitor
