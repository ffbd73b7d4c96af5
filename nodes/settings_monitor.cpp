#include "monitor/sim_plan.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

namespace {

void read_sim(config::section at, monitor::sim_settings& into) {
  std::uint64_t seed = into.seed;
  std::chrono::milliseconds period{into.period_ms};
  at.read("nodes", into.nodes, 1, 100'000)
      .read("devices", into.devices, 1, 64)
      .read_choice("model", into.model, {"ascend-910b", "nvidia-h100", "mixed"})
      .read("node_prefix", into.node_prefix)
      .read("seed", seed, 0, std::uint64_t{1} << 62)
      .read("period", period, 10ms, 1h)
      .read("incidents", into.incidents);
  into.seed = seed;
  into.period_ms = static_cast<std::uint32_t>(period.count());
}

}  // namespace

void read_monitor(config::section at, monitor::settings& into) {
  at.read("node", into.node)
      .read("interval", into.interval, 10ms, 10min)
      .read("expected_devices", into.expected_devices, 0, 1024)
      .read("call_deadline", into.call_deadline, 100ms, 10min)
      .read("admin_port", into.admin_port, 0, 65'535)
      .read("page_nodes", into.page_nodes, 0, 10'000)
      .read("record", into.record)
      .read_bytes("record_bytes", into.record_bytes, 1 << 10, 1ULL << 40)
      .read("mirror", into.mirror)
      .read("mirror_subject", into.mirror_subject);
  read_sim(at.below("sim"), into.sim);
  if (into.mirror_subject.empty() || into.mirror_subject.find_first_of(" *>") != std::string::npos)
    at.complain("mirror_subject", "a NATS subject without wildcards");
}

}  // namespace infernex::nodes
