#include <doctest/doctest.h>

#include "actors/engine/source_state.hpp"
#include "tests/unit/engine/stream_fixture.hpp"

namespace {

using namespace infernex::engine;
using namespace std::chrono_literals;
using verdict = batch_verdict;
using fixture = stream_fixture;

TEST_CASE("a sequence that goes backwards is a restart: clear and replay from the start") {
  fixture f;
  f.run_to(4);
  CHECK(f.live(5) == verdict::apply);
  f.pass(500ms);
  f.life = 1;
  CHECK(f.live(0) == verdict::clear_and_hold);
  CHECK_FALSE(f.state.last_sequence().has_value());
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(0) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(0) == verdict::drop);
  CHECK(f.live(1) == verdict::apply);
  CHECK(f.state.totals().restarts == 1);
  CHECK_FALSE(f.state.partial());
}

TEST_CASE("a restart is seen even if the new engine's sequence is larger") {
  fixture f;
  f.run_to(4);
  f.pass(500ms);
  f.life = 1;
  CHECK(f.live(9) == verdict::hold);
  REQUIRE(f.asked() == 4);
  CHECK(f.replayed(4) == verdict::clear_and_drop);  // the same sequence with other content
  CHECK(f.replayed(5) == verdict::drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  REQUIRE(f.asked() == 0);
  for (std::uint64_t i = 0; i <= 9; ++i) CHECK(f.replayed(i) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(9) == verdict::drop);
  CHECK_FALSE(f.state.partial());
}

TEST_CASE("a held batch that the replay after it does not have is of a former life: the socket is opened anew") {
  for (const std::uint64_t waiting : {3, 6, 9}) {  // its sequence is known with other content, due next, or beyond
    CAPTURE(waiting);
    fixture f;
    f.run_to(1);
    f.pass(500ms);
    CHECK(f.live(waiting) == verdict::hold);
    f.life = 1;  // the engine restarts before it answers
    REQUIRE(f.asked() == 1);
    CHECK(f.replayed(1) == verdict::clear_and_drop);
    CHECK_FALSE(f.state.on_replay_end(f.now));
    REQUIRE(f.asked() == 0);
    for (std::uint64_t i = 0; i <= 5; ++i) CHECK(f.replayed(i) == verdict::apply);
    CHECK_FALSE(f.state.on_replay_end(f.now));
    f.life = 0;
    CHECK(f.live(waiting) == verdict::renew);
    f.state.start(f.now);
    CHECK_FALSE(f.asked().has_value());  // not at once: replays have their pause
    f.life = 1;
    f.pass(200ms);
    f.run_to(5);
    CHECK_FALSE(f.state.partial());
  }
}

TEST_CASE("another publisher is a restart, whatever its sequence; what is left of the former one is dropped") {
  constexpr publisher_id first{1};
  constexpr publisher_id second{2};
  for (const bool can_replay : {true, false}) {
    CAPTURE(can_replay);
    fixture f(can_replay);
    if (can_replay) f.run_to(0);
    const auto from = [&f](const publisher_id& who, std::uint64_t sequence) {
      return f.state.on_live(sequence, f.life * 1000 + sequence, f.now, who);
    };
    f.pass(500ms);
    if (!can_replay) CHECK(from(first, 0) == verdict::apply);
    CHECK(from(first, 1) == verdict::apply);
    CHECK(f.live(2) == verdict::apply);  // one that does not say
    f.life = 1;
    if (!can_replay) {
      CHECK(from(second, 3) == verdict::clear_and_apply);
      CHECK(f.state.partial());
    } else {
      CHECK(from(second, 3) == verdict::clear_and_hold);
      REQUIRE(f.asked() == 0);
      for (std::uint64_t i = 0; i <= 3; ++i) CHECK(f.replayed(i) == verdict::apply);
      CHECK_FALSE(f.state.on_replay_end(f.now));
      CHECK(from(second, 3) == verdict::drop);
      CHECK_FALSE(f.state.partial());
    }
    CHECK(from(first, 4) == verdict::drop);
    CHECK(from(second, 4) == verdict::apply);
    CHECK(f.state.totals().restarts == 1);
  }
}

TEST_CASE("a check that another publisher answers is a restart") {
  constexpr publisher_id first{1};
  constexpr publisher_id second{2};
  fixture f;
  f.run_to(2);
  CHECK(f.state.on_live(3, 3, f.now, first) == verdict::apply);
  f.pass(1s);
  REQUIRE(f.asked() == 3);
  CHECK(f.state.on_replayed(3, 3, f.now, second) == verdict::clear_and_drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  REQUIRE(f.asked() == 0);
  CHECK(f.state.on_replayed(0, 1000, f.now, second) == verdict::apply);
  CHECK(f.state.totals().restarts == 1);
}

TEST_CASE("a restart is seen after a long replay too, when no live batch was read before") {
  fixture f;
  REQUIRE(f.asked() == 0);
  REQUIRE(f.replayed(0) == verdict::apply);
  for (std::uint64_t i = 1; i <= 20'000; ++i) REQUIRE(f.replayed(i) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  f.life = 1'000;
  CHECK(f.live(1) == verdict::clear_and_hold);  // long forgotten what batch 1 was: none so old can be waiting
  CHECK(f.state.totals().restarts == 1);
}
}  // namespace
