#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "messages/registry.hpp"

namespace infernex::monitor {

using metric = fb::HwMetric;

inline constexpr std::size_t metric_count = static_cast<std::size_t>(metric::MAX) + 1;

enum class metric_kind : std::uint8_t {
  /// May go up and down.
  gauge,
  /// Only goes up, but for a reload of the driver (then from 0 again).
  counter,
  /// Only goes up, over reloads and reboots.
  lifetime,
  /// A number that stands for a state; its size means nothing.
  state,
};

/// What the code knows of a metric besides its value.
struct metric_info {
  metric id = metric::Unknown;
  /// The name in rules, in configuration and in reports: that of messages/hw_metric.fbs in snake_case.
  std::string_view name;
  /// For people; empty: a plain number.
  std::string_view unit;
  metric_kind kind = metric_kind::gauge;
  /// A reading outside is no reading (reference: tools return -1, 0xFFFF or more than 100 % for "failed").
  double least = 0;
  double most = 0;
};

/// Of a metric a newer sender knows and we do not: the row of `Unknown`, whose bounds admit every finite number.
const metric_info& info(metric id);

/// Nothing: no metric has this name.
std::optional<metric> find_metric(std::string_view name);

/// Whether `value` can be a reading of it: finite and within the bounds.
bool is_valid(metric id, double value);

}  // namespace infernex::monitor
