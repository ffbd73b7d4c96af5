#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nodes/settings.hpp"

namespace CLI {
class App;
}

namespace infernex::nodes {

/// The options every role has. What is given on the command line wins over the file.
struct role_options {
  std::string config;
  std::optional<std::string> nats;
  std::optional<std::uint16_t> port;
  std::optional<std::string> strategy;
};

/// Adds `--config`, and `--nats` where the role speaks on the bus.
std::shared_ptr<role_options> add_role_options(CLI::App& command, bool speaks_on_the_bus = true);

/// Adds `--strategy`, of roles that decide.
void add_strategy_option(CLI::App& command, role_options& options);

/// The settings of file and command line; nothing if the file has mistakes (printed already).
std::optional<node_settings> load(const role_options& options);

/// `--pd-mode`; empty: as configured.
void add_pd_mode_option(CLI::App& command, std::string& into);
gateway::pd_mode pd_mode_of(std::string_view word);

}  // namespace infernex::nodes
