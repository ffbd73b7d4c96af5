#include "monitor/fleet_source.hpp"

namespace infernex::monitor {

void fleet_source::poll(const poll_time& now, const std::function<void(node_report&&)>& each) {
  constexpr std::uint64_t inventory_polls = 60;
  fleet_.step();
  const bool again = polls_++ % inventory_polls == 0;
  for (const auto& node : fleet_.nodes()) {
    if (node.silent()) continue;
    node_report report;
    report.node = node.name();
    stamped_ = node.sample();
    stamped_.time = now.wall_ns;
    report.sample = &stamped_;
    report.events = node.events();
    for (auto& event : report.events) event.time = now.wall_ns;
    if (again || node.inventory_changed()) {
      report.inventory = node.inventory();
      report.inventory->time = now.wall_ns;
    }
    each(std::move(report));
  }
}

}  // namespace infernex::monitor
