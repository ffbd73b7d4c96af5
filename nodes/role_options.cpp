#include "nodes/role_options.hpp"

#include <CLI/CLI.hpp>

namespace infernex::nodes {

std::shared_ptr<role_options> add_role_options(CLI::App& command, bool speaks_on_the_bus) {
  auto options = std::make_shared<role_options>();
  command.add_option("--config", options->config, "Configuration file (YAML)")->check(CLI::ExistingFile);
  if (speaks_on_the_bus) command.add_option("--nats", options->nats, "NATS server, e.g. nats://127.0.0.1:4222");
  return options;
}

void add_strategy_option(CLI::App& command, role_options& options) {
  std::vector<std::string> known;
  for (const auto name : router::strategies()) known.emplace_back(name);
  command.add_option("--strategy", options.strategy, "Routing policy, instead of the file's (docs/routing.md)")
      ->check(CLI::IsMember(known));
}

void add_pd_mode_option(CLI::App& command, std::string& into) {
  command.add_option("--pd-mode", into, "Who runs requests at pairs of engines: their group's proxy, or the gateway")
      ->check(CLI::IsMember({"proxy", "embedded"}));
}

gateway::pd_mode pd_mode_of(std::string_view word) {
  return word == "embedded" ? gateway::pd_mode::embedded : gateway::pd_mode::proxy;
}

std::optional<node_settings> load(const role_options& options) {
  node_settings settings;
  if (!load_settings(options.config, settings)) return std::nullopt;
  if (options.nats) settings.bus.url = *options.nats;
  for (auto* policy : {&settings.router.policy, &settings.gateway.policy}) {
    if (!options.strategy) break;
    policy->strategy = *options.strategy;
    policy->config.reset();
    policy->source.reset();
  }
  return settings;
}

}  // namespace infernex::nodes
