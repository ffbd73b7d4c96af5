#pragma once

#include <string>

#include "nodes/settings.hpp"

namespace infernex::nodes {

/// Runs the whole stack on this machine: nats-server, simulated engines, agent, indexer, router, gateway,
/// each a process that is started again when it dies. Prints the ready line when a chat request would
/// succeed. Ends everything at SIGINT or SIGTERM: exit code 0. `config_file` (may be empty) is handed to
/// every process. A gateway port of 0 is a free one.
int up(node_settings settings, const std::string& config_file);

}  // namespace infernex::nodes
