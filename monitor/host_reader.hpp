#pragma once

#include "monitor/settings.hpp"
#include "monitor/source.hpp"

namespace infernex::monitor {

/// The readers that this node's monitor uses, in the order of trust.
std::vector<std::shared_ptr<reader>> readers_of_node(const settings& how);

/// The kernel's log from now on, from `device` (/dev/kmsg): what was logged before is no news.
std::shared_ptr<reader> make_kernel_log_reader(std::string device);

/// CPU, memory, load and blocked processes, from /proc.
std::shared_ptr<reader> make_host_reader();

}  // namespace infernex::monitor
