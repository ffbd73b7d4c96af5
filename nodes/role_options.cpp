#include "nodes/role_options.hpp"

#include <CLI/CLI.hpp>

namespace infernex::nodes {

std::shared_ptr<role_options> add_role_options(CLI::App& command, bool speaks_on_the_bus) {
  auto options = std::make_shared<role_options>();
  command.add_option("--config", options->config, "Configuration file (YAML)")->check(CLI::ExistingFile);
  if (speaks_on_the_bus) command.add_option("--nats", options->nats, "NATS server, e.g. nats://127.0.0.1:4222");
  return options;
}

std::optional<node_settings> load(const role_options& options) {
  node_settings settings;
  if (!load_settings(options.config, settings)) return std::nullopt;
  if (options.nats) settings.bus.url = *options.nats;
  return settings;
}

}  // namespace infernex::nodes
