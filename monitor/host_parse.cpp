#include "monitor/host_parse.hpp"

#include "monitor/text_scan.hpp"

namespace infernex::monitor {

std::optional<cpu_ticks> parse_proc_stat(std::string_view text) {
  const auto words = words_of(next_line(text));
  if (words.size() < 5 || words[0] != "cpu") return std::nullopt;
  cpu_ticks ticks;
  // user nice system idle iowait irq softirq steal; guest times are in user's already.
  for (std::size_t i = 1; i < words.size() && i <= 8; ++i) {
    const auto value = parse_unsigned(words[i]);
    if (!value) return std::nullopt;
    ticks.total += *value;
    if (i == 4 || i == 5) ticks.idle += *value;
  }
  return ticks;
}

std::optional<double> cpu_utilization(const cpu_ticks& before, const cpu_ticks& now) {
  if (now.total <= before.total || now.idle < before.idle) return std::nullopt;
  const auto total = static_cast<double>(now.total - before.total);
  const auto idle = static_cast<double>(now.idle - before.idle);
  return idle > total ? std::nullopt : std::optional(100 * (1 - idle / total));
}

std::optional<double> parse_blocked_processes(std::string_view text) {
  while (!text.empty()) {
    const auto words = words_of(next_line(text));
    if (words.size() == 2 && words[0] == "procs_blocked") return parse_number(words[1]);
  }
  return std::nullopt;
}

void parse_meminfo(std::string_view text, readings& into) {
  while (!text.empty()) {
    const auto words = words_of(next_line(text));
    if (words.size() != 3 || words[2] != "kB") continue;
    const auto value = parse_number(words[1]);
    if (!value) continue;
    if (words[0] == "MemTotal:") into.set(metric::NodeMemoryTotal, *value * 1024);
    if (words[0] == "MemAvailable:") into.set(metric::NodeMemoryAvailable, *value * 1024);
  }
}

std::optional<double> parse_loadavg(std::string_view text) {
  const auto words = words_of(next_line(text));
  return words.size() < 3 ? std::nullopt : parse_number(words[0]);
}

std::optional<double> parse_aer_total(std::string_view text) {
  while (!text.empty()) {
    const auto words = words_of(next_line(text));
    if (words.size() == 2 && words[0].starts_with("TOTAL_ERR_")) return parse_number(words[1]);
  }
  return std::nullopt;
}

}  // namespace infernex::monitor
