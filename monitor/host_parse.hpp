#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "monitor/device_sample.hpp"

namespace infernex::monitor {

/// The first line of /proc/stat: clock ticks, idle and in all.
struct cpu_ticks {
  std::uint64_t idle = 0;
  std::uint64_t total = 0;
};
std::optional<cpu_ticks> parse_proc_stat(std::string_view text);
/// Per cent busy between two readings; nothing if no time has passed or a counter fell.
std::optional<double> cpu_utilization(const cpu_ticks& before, const cpu_ticks& now);
/// `procs_blocked` of /proc/stat.
std::optional<double> parse_blocked_processes(std::string_view text);

/// MemTotal and MemAvailable of /proc/meminfo, in bytes.
void parse_meminfo(std::string_view text, readings& into);
/// The first number of /proc/loadavg.
std::optional<double> parse_loadavg(std::string_view text);
/// The total of an AER statistics file in sysfs (aer_dev_correctable and its kin), from its TOTAL_ERR_ line.
std::optional<double> parse_aer_total(std::string_view text);

}  // namespace infernex::monitor
