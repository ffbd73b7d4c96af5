#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "diagnosis/knowledge.hpp"

namespace infernex::diagnosis {

/// Occurrences within a sliding window, in 24 steps: counts nothing that is older than the window, and all that is
/// younger than 23 24ths of it.
class window_count {
 public:
  void add(millis now, millis width, std::uint32_t n) {
    move(now, width);
    auto& at = counts_[static_cast<std::size_t>(head_) % steps];
    at = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{at} + n, UINT32_MAX));
  }
  std::uint64_t sum(millis now, millis width) {
    move(now, width);
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
  }
  void clear() { counts_ = {}; }

 private:
  static constexpr std::size_t steps = 24;
  void move(millis now, millis width) {
    const auto step = now / std::max<millis>(1, width / static_cast<millis>(steps));
    if (step <= head_) return;
    for (auto at = std::max(head_ + 1, step - static_cast<millis>(steps) + 1); at <= step; ++at)
      counts_[static_cast<std::size_t>(at) % steps] = 0;
    head_ = step;
  }
  millis head_ = 0;
  std::array<std::uint32_t, steps> counts_{};
};

}  // namespace infernex::diagnosis
