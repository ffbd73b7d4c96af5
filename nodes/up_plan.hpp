#pragma once

#include <string>
#include <vector>

#include "nodes/child.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

/// The processes of `infernex up`.
struct stack {
  std::string nats_url;
  /// In the order in which they start; they end in reverse.
  std::vector<child> children;
};

/// `program`: this executable. `nats_server`: used unless settings name a running one. Gives the gateway a free port if
/// it has none.
stack plan(node_settings& settings, const std::string& config_file, const std::string& program,
           const std::string& nats_server);

}  // namespace infernex::nodes
