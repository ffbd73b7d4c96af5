#pragma once

#include "monitor/settings.hpp"
#include "monitor/source.hpp"

namespace infernex::monitor {

/// The readers that this node's monitor uses, in the order of trust.
std::vector<std::shared_ptr<reader>> readers_of_node(const settings& how);

/// CPU, memory, load and blocked processes, from /proc.
std::shared_ptr<reader> make_host_reader();

}  // namespace infernex::monitor
