#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace infernex::engine {

/// One sample line of a Prometheus text page (format 0.0.4, or OpenMetrics), cut into its parts.
struct prometheus_sample {
  std::string_view metric;
  /// What stands between the braces, unread.
  std::string_view labels;
  double value = 0;
};

/// Nothing: not a sample line.
std::optional<prometheus_sample> parse_sample(std::string_view line);

/// The unescaped value of one label, if `labels` is well-formed up to it and has it.
std::optional<std::string> find_label(std::string_view labels, std::string_view name);

}  // namespace infernex::engine
