#pragma once

// What pickers share to rank without allocating: `order` keeps its memory from decision to decision.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "actors/router/plugin.hpp"

namespace infernex::router::plugins {

/// Fills `order` with `keep` of 0..count-1 (all, if there are no more), drawn one after the other.
inline void draw(random_source& random, std::size_t count, std::size_t keep, std::vector<std::uint32_t>& order) {
  order.resize(count);
  std::iota(order.begin(), order.end(), 0U);
  const auto kept = std::min(keep, count);
  for (std::size_t i = 0; i < kept; ++i) {
    std::uniform_int_distribution<std::size_t> any(i, count - 1);
    std::swap(order[i], order[any(random)]);
  }
  order.resize(kept);
}

/// Leaves the first `keep` of `order` by `before`, in their order.
template <class Before>
void keep_first(std::vector<std::uint32_t>& order, std::size_t keep, Before before) {
  const auto kept = std::min(keep, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), before);
  order.resize(kept);
}

/// Ranks 0..count-1 by `before`; equal ones by their number.
template <class Before>
void rank_by(std::size_t count, std::size_t keep, std::vector<std::uint32_t>& order, Before before) {
  order.resize(count);
  std::iota(order.begin(), order.end(), 0U);
  keep_first(order, keep, [&](std::uint32_t a, std::uint32_t b) {
    if (before(a, b)) return true;
    return !before(b, a) && a < b;
  });
}

/// Ranks 0..count-1 by `before`; equal ones in an order drawn anew each time.
template <class Before>
void rank_by_with_random_ties(random_source& random, std::size_t count, std::size_t keep,
                              std::vector<std::uint32_t>& order, Before before) {
  draw(random, count, count, order);
  keep_first(order, keep, before);
}

}  // namespace infernex::router::plugins
