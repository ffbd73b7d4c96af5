#pragma once

#include <chrono>
#include <cstdint>

namespace infernex::gateway {

/// Whether to ask a router that may be silent. After so many silences in a row nobody asks for a pause; then one
/// request probes, and each probe that times out doubles the pause. Any answer, even a refusal, ends it. For one
/// thread.
///
/// Time-outs within one `window` (as long as an answer is waited for) are one silence: requests travel in batches, and
/// one lost message is many time-outs.
class router_breaker {
 public:
  using clock_point = std::chrono::steady_clock::time_point;
  struct limits {
    std::uint32_t timeouts = 3;
    std::chrono::milliseconds first_pause{500};
    std::chrono::milliseconds most_pause{10'000};
  };
  router_breaker(limits bounds, std::chrono::milliseconds window) : bounds_(bounds), window_(window) {}

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
  std::chrono::milliseconds window_;
  std::uint32_t timeouts_ = 0;
  /// Time-outs before it belong to a silence that has been counted.
  clock_point window_ends_;
  std::chrono::milliseconds pause_{0};  // 0: none
  clock_point until_;
  bool probing_ = false;
};

}  // namespace infernex::gateway
