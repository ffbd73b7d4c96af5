#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace infernex {

struct restart_limits {
  /// More restarts than this within the window: give up.
  std::uint32_t max_restarts = 10;
  std::chrono::milliseconds window{60'000};
  /// The pause before a restart doubles from first to longest; a quiet window sets it back.
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{5'000};
};

/// When may something that has died start again? Used for actors and for processes.
class restart_policy {
 public:
  using point = std::chrono::steady_clock::time_point;
  explicit restart_policy(restart_limits limits = {}) : limits_(limits) {}

  /// Something died at `now`: the pause before its restart, or nothing if it has died too often.
  std::optional<std::chrono::milliseconds> died(point now) {
    while (!deaths_.empty() && now - deaths_.front() > limits_.window) deaths_.pop_front();
    if (deaths_.size() >= limits_.max_restarts) return std::nullopt;
    auto pause = limits_.first_pause;
    for (std::size_t i = 0; i < deaths_.size() && pause < limits_.longest_pause; ++i) pause *= 2;
    deaths_.push_back(now);
    return std::min(pause, limits_.longest_pause);
  }

 private:
  restart_limits limits_;
  std::deque<point> deaths_;
};

}  // namespace infernex
