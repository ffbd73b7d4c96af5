#include "gateway/router_breaker.hpp"

#include <algorithm>

namespace infernex::gateway {

router_breaker::leave router_breaker::may_ask(clock_point now) {
  if (!pausing()) return leave::ask;
  if (now < until_ || probing_) return leave::skip;
  probing_ = true;
  return leave::probe;
}

bool router_breaker::answered() {
  const bool was = pausing();
  timeouts_ = 0;
  pause_ = {};
  probing_ = false;
  return was;
}

bool router_breaker::timed_out(leave with, clock_point now) {
  if (with == leave::probe) {
    // Late: somebody else has had an answer meanwhile.
    if (!pausing()) return false;
    probing_ = false;
    pause_ = std::min(pause_ * 2, bounds_.most_pause);
    until_ = now + pause_;
    return false;
  }
  // Asked before the pause began: says nothing new.
  if (pausing() || now < window_ends_) return false;
  window_ends_ = now + window_;
  if (++timeouts_ < bounds_.timeouts) return false;
  pause_ = bounds_.first_pause;
  until_ = now + pause_;
  return true;
}

void router_breaker::gave_up(leave with) {
  if (with == leave::probe) probing_ = false;
}

}  // namespace infernex::gateway
