#pragma once

// Private to the scheduler: what is filled into the rows of a decision, and its scores.

#include <cstdint>
#include <span>
#include <vector>

#include "actors/router/placement.hpp"
#include "actors/router/plugin.hpp"
#include "actors/router/row_finder.hpp"

namespace infernex::router {

/// What was not measured counts as the mean of the others: neither best nor worst.
void fill_unmeasured(std::span<double> scores);

/// A total of an engine that is to be chosen less: multiplied by `factor` (0..1), or divided where that makes it worse:
/// costs, and totals below zero.
double made_worse(double total, double factor, bool is_cost);

/// What is known of cached blocks, written into the rows of the engines that were named.
void fill_overlaps(std::vector<candidate>& rows, const overlaps& cached, std::uint32_t blocks, row_finder& by_name);

}  // namespace infernex::router
