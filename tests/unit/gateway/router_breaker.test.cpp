#include "gateway/router_breaker.hpp"

#include <doctest/doctest.h>

using namespace infernex::gateway;
using namespace std::chrono_literals;
using leave = router_breaker::leave;

namespace {
const router_breaker::clock_point start{1000s};
const router_breaker::limits three{3, 500ms, 1500ms};
}  // namespace

TEST_CASE("time-outs in a row bring a pause, one answer among them does not") {
  router_breaker b(three, 0ms);
  for (int i = 0; i < 5; ++i) {
    CHECK(b.may_ask(start) == leave::ask);
    CHECK_FALSE(b.timed_out(leave::ask, start));
    CHECK_FALSE(b.timed_out(leave::ask, start));
    CHECK_FALSE(b.answered());
  }
  CHECK_FALSE(b.timed_out(leave::ask, start));
  CHECK_FALSE(b.timed_out(leave::ask, start));
  CHECK(b.timed_out(leave::ask, start));
  CHECK(b.may_ask(start) == leave::skip);
  CHECK(b.may_ask(start + 499ms) == leave::skip);
}

TEST_CASE("after the pause one request probes; its time-out doubles the pause up to the most, its answer ends it") {
  router_breaker b(three, 0ms);
  for (int i = 0; i < 3; ++i) b.timed_out(leave::ask, start);
  // Those that were asked before the pause do not lengthen it.
  CHECK_FALSE(b.timed_out(leave::ask, start + 400ms));
  auto now = start + 500ms;
  for (const auto pause : {1000ms, 1500ms, 1500ms}) {
    CHECK(b.may_ask(now) == leave::probe);
    CHECK(b.may_ask(now) == leave::skip);
    CHECK_FALSE(b.timed_out(leave::probe, now));
    CHECK(b.may_ask(now + pause - 1ms) == leave::skip);
    now += pause;
  }
  CHECK(b.may_ask(now) == leave::probe);
  CHECK(b.answered());
  CHECK(b.may_ask(now) == leave::ask);
  CHECK_FALSE(b.timed_out(leave::ask, now));
  CHECK(b.may_ask(now) == leave::ask);
}

TEST_CASE("a probe whose request went away leaves its place to the next; a late probe says nothing") {
  router_breaker b(three, 0ms);
  for (int i = 0; i < 3; ++i) b.timed_out(leave::ask, start);
  const auto now = start + 600ms;
  CHECK(b.may_ask(now) == leave::probe);
  b.gave_up(leave::probe);
  CHECK(b.may_ask(now) == leave::probe);
  b.gave_up(leave::ask);
  CHECK(b.may_ask(now) == leave::skip);
  CHECK(b.answered());  // an older question's answer has come after all
  CHECK_FALSE(b.timed_out(leave::probe, now));
  CHECK(b.may_ask(now) == leave::ask);
}

TEST_CASE("a lost batch is one silence, however many requests it carried; a second batch lost with it as well") {
  router_breaker b(three, 300ms);
  auto now = start;
  for (int silence = 0; silence < 3; ++silence) {
    int pauses = 0;
    for (int i = 0; i < 64; ++i) pauses += b.timed_out(leave::ask, now + std::chrono::milliseconds(i));
    CHECK(pauses == (silence == 2 ? 1 : 0));
    now += 300ms;
  }
  CHECK(b.pausing());
  CHECK(b.until() == start + 600ms + 500ms);
}
