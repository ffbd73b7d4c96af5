#pragma once

#include <string>
#include <vector>

#include "nodes/settings.hpp"

namespace infernex::nodes {

/// Runs one or several roles (agent, indexer, router, proxy, gateway) in this process until SIGINT or SIGTERM.
/// Exit code 0 after an orderly end, 1 if a role could not start or was given up by its supervisor.
int host(const node_settings& settings, const std::vector<std::string>& roles);

}  // namespace infernex::nodes
