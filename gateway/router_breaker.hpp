#pragma once

#include <chrono>
#include <cstdint>

namespace infernex::gateway {

/// Whether to ask a router that may be silent. After so many time-outs in a row nobody asks for a pause; then one
/// request probes, and each probe that times out doubles the pause. Any answer, even a refusal, ends it. For one
/// thread.
class router_breaker {
 public:
  using clock_point = std::chrono::steady_clock::time_point;
  struct limits {
    std::uint32_t timeouts = 3;
    std::chrono::milliseconds first_pause{500};
    std::chrono::milliseconds most_pause{10'000};
  };
  explicit router_breaker(limits bounds) : bounds_(bounds) {}

  enum class leave : std::uint8_t { ask, probe, skip };
  /// Who got `ask` or `probe` reports one of the outcomes below, with that leave.
  leave may_ask(clock_point now);
  /// True: the pause is over.
  bool answered();
  /// True: a pause begins (not: goes on).
  bool timed_out(leave with, clock_point now);
  /// The request went away before there was an outcome: the next one may probe.
  void gave_up(leave with);

  bool pausing() const { return pause_.count() != 0; }
  /// The next probe. Meaningful while pausing.
  clock_point until() const { return until_; }

 private:
  limits bounds_;
  std::uint32_t timeouts_ = 0;
  std::chrono::milliseconds pause_{0};  // 0: none
  clock_point until_;
  bool probing_ = false;
};

}  // namespace infernex::gateway
