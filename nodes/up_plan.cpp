#include "nodes/up_plan.hpp"

#include "actors/router/policy.hpp"
#include "nodes/ports.hpp"

namespace infernex::nodes {

namespace {

constexpr const char* group = "pd-0";

std::string tcp(std::uint16_t port) { return "tcp://127.0.0.1:" + std::to_string(port); }
std::string http_url(std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); }

class planner {
 public:
  planner(node_settings& settings, std::string config_file, std::string program)
      : settings_(settings),
        config_file_(std::move(config_file)),
        program_(std::move(program)),
        ports_(6 + 4 * std::size_t{settings.up.engines + settings.up.pd.prefill + settings.up.pd.decode}) {}

  stack run(const std::string& nats_server) {
    if (settings_.gateway.port == 0) settings_.gateway.port = ports_.take();
    planned_.nats_url = settings_.up.nats;
    if (planned_.nats_url.empty()) {
      const auto port = ports_.take();
      planned_.nats_url = "nats://127.0.0.1:" + std::to_string(port);
      add("nats-server", {nats_server, "-a", "127.0.0.1", "-p", std::to_string(port)});
    }
    agent_ = {"--nats", planned_.nats_url, "--admin-port", std::to_string(ports_.take())};
    for (std::uint32_t i = 0; i < settings_.up.engines; ++i) add_engine("engine-" + std::to_string(i), {});
    const auto& pd = settings_.up.pd;
    for (std::uint32_t i = 0; i < pd.prefill; ++i) add_engine("prefill-" + std::to_string(i), "prefill");
    for (std::uint32_t i = 0; i < pd.decode; ++i) add_engine("decode-" + std::to_string(i), "decode");
    add_role("agent", agent_);
    const bool embedded_pd = settings_.gateway.pd == gateway::pd_mode::embedded;
    if (pd.any() && !embedded_pd)
      add_role("proxy", {"--nats", planned_.nats_url, "--group", group, "--port", std::to_string(ports_.take())});
    std::vector<std::string> gateway{"--nats", planned_.nats_url, "--port", std::to_string(settings_.gateway.port)};
    if (embedded_pd) gateway.insert(gateway.end(), {"--pd-mode", "embedded"});
    std::vector<std::string> router{"--nats", planned_.nats_url};
    // A policy that knows no pairs would leave the group without work.
    if (pd.any() && !router::disaggregates(settings_.router.policy))
      router.insert(router.end(), {"--strategy", "infernex"});
    if (pd.any() && !router::disaggregates(settings_.gateway.policy))
      gateway.insert(gateway.end(), {"--strategy", "infernex"});
    if (settings_.gateway.router != gateway::router_mode::embedded) {
      add_role("indexer", {"--nats", planned_.nats_url, "--admin-port", std::to_string(ports_.take())});
      router.insert(router.end(), {"--admin-port", std::to_string(ports_.take())});
      add_role("router", router);
    }
    add_role("gateway", gateway);
    return std::move(planned_);
  }

 private:
  void add(const std::string& name, std::vector<std::string> command) {
    planned_.children.emplace_back(name, std::move(command), settings_.up.restarts);
  }
  void add_as(const std::string& name, const std::string& role, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{program_, role};
    if (!config_file_.empty()) command.insert(command.end(), {"--config", config_file_});
    command.insert(command.end(), arguments.begin(), arguments.end());
    add(name, std::move(command));
  }
  void add_role(const std::string& role, const std::vector<std::string>& arguments) { add_as(role, role, arguments); }

  /// `part`: prefill or decode, of the group; empty: all of a request.
  void add_engine(const std::string& instance, const std::string& part) {
    const auto port = ports_.take(), events = ports_.take(), replay = ports_.take();
    std::vector<std::string> engine{"--instance",  instance,    "--port",      std::to_string(port),
                                    "--kv-events", tcp(events), "--kv-replay", tcp(replay)};
    auto told = instance + "," + http_url(port) + "," + tcp(events) + "," + tcp(replay);
    if (settings_.up.faults) engine.emplace_back("--faults");
    if (!part.empty()) {
      const auto& protocol = settings_.up.kv_protocol;
      const auto transfer = std::to_string(ports_.take());
      engine.insert(engine.end(), {"--kv-protocol", protocol, "--kv-role", part, "--kv-port", transfer});
      told += ",role=" + part + ",pd_group=" + group + ",kv_protocol=" + protocol;
      if (protocol == "mooncake" || protocol == "sglang") told += ",bootstrap_port=" + transfer;
    }
    add_as(instance, "engine-sim", engine);
    agent_.insert(agent_.end(), {"--engine", told});
  }

  node_settings& settings_;
  std::string config_file_;
  std::string program_;
  free_ports ports_;
  stack planned_;
  std::vector<std::string> agent_;
};

}  // namespace

stack plan(node_settings& settings, const std::string& config_file, const std::string& program,
           const std::string& nats_server) {
  return planner(settings, config_file, program).run(nats_server);
}

}  // namespace infernex::nodes
