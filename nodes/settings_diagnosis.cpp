#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

void read_diagnosis(config::section at, diagnosis::settings& into) {
  std::chrono::milliseconds forget{into.limits.forget};
  at.read("admin_address", into.admin_address)
      .read("admin_port", into.admin_port, 0, 65'535)
      .read("knowledge", into.knowledge)
      .read("overrides", into.overrides)
      .read("max_nodes", into.limits.max_nodes, 1, 1'000'000)
      .read("max_devices", into.limits.max_devices, 1, 1'000'000)
      .read("forget", forget, 1min, 720h)
      .read("sample_credit", into.sample_credit, 1, 1'000'000)
      .read("event_credit", into.event_credit, 1, 1'000'000)
      .read("repeat", into.repeat, 0ms, 1h);
  into.limits.forget = forget.count();
  if (!into.knowledge.empty()) into.knowledge = at.beside(into.knowledge);
  if (!into.overrides.empty()) into.overrides = at.beside(into.overrides);
}

}  // namespace infernex::nodes
