#pragma once

#include <string>
#include <vector>

#include "actors/simulator/replay_report.hpp"

namespace infernex::simulator {

/// TTFT against load as a self-contained SVG: a colour a policy, p50 solid and p99 dashed, milliseconds on a
/// logarithmic axis. Load is the share of full load where every row says it, else requests offered a second. Rows
/// without a TTFT are left out.
std::string plot_svg(const replay_report& report);

/// Steps of 1, 2 or 5 times a power of ten, about `wanted` of them, covering from..to; for the axis of loads.
/// Precondition: from <= to.
std::vector<double> linear_ticks(double from, double to, int wanted);
/// 1, 2 and 5 times every power of ten, from the last not above `from` to the first not below `to`.
/// Precondition: 0 < from <= to.
std::vector<double> decade_ticks(double from, double to);

}  // namespace infernex::simulator
