#include <doctest/doctest.h>

#include "actors/engine/replay_permits.hpp"
#include "actors/engine/source_state.hpp"
#include "tests/unit/engine/stream_fixture.hpp"

namespace {

using namespace infernex::engine;
using namespace std::chrono_literals;
using verdict = batch_verdict;
using fixture = stream_fixture;

TEST_CASE("a replay that begins too late means lost history: clear, go on, partial") {
  fixture f;
  f.run_to(4);
  f.pass(500ms);
  CHECK(f.live(50) == verdict::hold);
  REQUIRE(f.asked() == 4);
  CHECK(f.replayed(20) == verdict::clear_and_drop);  // nothing proves that the engine is the same
  CHECK_FALSE(f.state.on_replay_end(f.now));
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(20) == verdict::apply);
  CHECK(f.replayed(21) == verdict::apply);
  CHECK(f.state.partial());
  CHECK(f.state.totals().losses == 1);

  fixture late;
  REQUIRE(late.asked() == 0);
  CHECK(late.replayed(5) == verdict::apply);  // nothing to clear
  CHECK_FALSE(late.state.on_replay_end(late.now));
  CHECK(late.state.partial());
  CHECK(late.state.caught_up());
}

TEST_CASE("a replay without the last applied batch proves nothing, also where it brings what is missing") {
  fixture f;
  f.run_to(4);
  f.pass(500ms);
  CHECK(f.live(6) == verdict::hold);
  REQUIRE(f.asked() == 4);
  f.life = 1;
  CHECK(f.replayed(5) == verdict::clear_and_drop);
  CHECK(f.replayed(6) == verdict::drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  REQUIRE(f.asked() == 0);
  for (std::uint64_t i = 0; i <= 6; ++i) CHECK(f.replayed(i) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(6) == verdict::drop);
  CHECK_FALSE(f.state.partial());
  CHECK(f.state.totals().restarts == 1);

  fixture first;  // the same where only batch 0 was applied
  first.run_to(0);
  first.pass(500ms);
  CHECK(first.live(2) == verdict::hold);
  REQUIRE(first.asked() == 0);
  CHECK(first.replayed(1) == verdict::clear_and_drop);
}

TEST_CASE("a hole within a replay is asked for again, as long as each replay gets further") {
  fixture f;
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(0) == verdict::apply);
  CHECK(f.replayed(1) == verdict::apply);
  CHECK(f.replayed(5) == verdict::drop);
  CHECK(f.replayed(6) == verdict::drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK_FALSE(f.state.reads_live());
  CHECK_FALSE(f.state.caught_up());
  CHECK_FALSE(f.asked().has_value());  // not at once: replays have their pause
  f.pass(200ms);
  REQUIRE(f.asked() == 1);
  CHECK(f.replayed(1) == verdict::drop);
  CHECK(f.replayed(2) == verdict::apply);
  CHECK(f.replayed(4) == verdict::drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  f.pass(200ms);
  REQUIRE(f.asked() == 2);
  CHECK(f.replayed(2) == verdict::drop);
  for (std::uint64_t i = 3; i <= 6; ++i) CHECK(f.replayed(i) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.state.caught_up());
  CHECK_FALSE(f.state.partial());
  CHECK(f.state.totals().losses == 0);
  CHECK(f.state.totals().replay_failures == 2);

  f.pass(1s);  // and in a check of a live stream, which is not live then
  REQUIRE(f.asked() == 6);
  CHECK(f.replayed(6) == verdict::drop);
  CHECK(f.replayed(9) == verdict::drop);
  CHECK_FALSE(f.state.caught_up());
  CHECK(f.state.state() == stream_state::gap);
}

TEST_CASE("a hole at the same place twice is lost history; and replays with holes are bounded in number") {
  fixture f;
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(0) == verdict::apply);
  CHECK(f.replayed(3) == verdict::drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  f.pass(200ms);
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(0) == verdict::drop);
  CHECK(f.replayed(3) == verdict::clear_and_apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.state.caught_up());
  CHECK(f.state.partial());
  CHECK(f.state.totals().losses == 1);

  fixture leaking;
  std::uint64_t last = 0;
  REQUIRE(leaking.asked() == 0);
  CHECK(leaking.replayed(0) == verdict::apply);
  for (int i = 0; i < 16; ++i) {
    CHECK(leaking.replayed(last + 2) == verdict::drop);
    CHECK_FALSE(leaking.state.on_replay_end(leaking.now));
    leaking.pass(200ms);
    REQUIRE(leaking.asked() == last);
    CHECK(leaking.replayed(last) == verdict::drop);
    CHECK(leaking.replayed(++last) == verdict::apply);
  }
  CHECK(leaking.replayed(last + 2) == verdict::clear_and_apply);
  CHECK(leaking.state.partial());
}

TEST_CASE("replays are rate-limited; failing ones are given up, the stream followed and the replay tried again") {
  fixture f;
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.asked().has_value());
  CHECK_FALSE(f.state.on_tick(f.now));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    f.pass(2s);
    CHECK(f.state.on_tick(f.now));
    if (attempt == 3) break;
    CHECK_FALSE(f.state.reads_live());
    CHECK_FALSE(f.asked().has_value());
    f.pass(f.state.next_deadline() - f.now > 1s ? 1s : 400ms);
    REQUIRE(f.asked() == 0);
  }
  CHECK(f.state.reads_live());
  CHECK(f.state.partial());
  CHECK_FALSE(f.state.caught_up());
  CHECK(f.live(12) == verdict::apply);
  CHECK(f.live(13) == verdict::apply);
  f.pass(10s);
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(0) == verdict::clear_and_apply);
  for (std::uint64_t i = 1; i <= 13; ++i) {
    CHECK_FALSE(f.state.caught_up());  // what is applied is a part
    CHECK(f.state.state() == stream_state::replaying);
    CHECK(f.replayed(i) == verdict::apply);
  }
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK_FALSE(f.state.partial());
  CHECK(f.state.caught_up());
  CHECK(f.state.totals().replay_failures == 3);
}

TEST_CASE("an engine that answers replays but keeps no history is followed live") {
  fixture f;
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  f.pass(300ms);
  CHECK(f.live(6) == verdict::hold);
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(6) == verdict::renew);  // it may be an engine that has just started
  f.state.start(f.now);
  f.pass(300ms);
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  f.pass(300ms);
  CHECK(f.live(7) == verdict::hold);
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(7) == verdict::apply);
  CHECK(f.state.partial());
  f.pass(60s);
  CHECK_FALSE(f.asked().has_value());
  CHECK(f.live(8) == verdict::apply);
}

TEST_CASE("a replay that goes on and on has failed") {
  fixture f;
  REQUIRE(f.asked() == 0);
  const auto started = f.now;
  for (std::uint64_t i = 0; f.now - started < 119s; ++i) {
    CHECK(f.replayed(i) == verdict::apply);
    f.pass(1s);
    CHECK_FALSE(f.state.on_tick(f.now));
  }
  CHECK(f.state.next_deadline() == started + 120s);
  f.pass(1s);
  CHECK(f.state.on_tick(f.now));
  CHECK(f.state.totals().replay_failures == 1);
}

TEST_CASE("a replay waits while others run") {
  fixture f;
  CHECK(f.state.wants_replay(f.now));
  f.state.postpone_replay(f.now + 50ms);
  CHECK_FALSE(f.state.wants_replay(f.now));
  CHECK_FALSE(f.asked().has_value());
  CHECK(f.state.next_deadline() == f.now + 50ms);
  CHECK(f.state.state() == stream_state::cold);
  f.pass(50ms);
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.state.wants_replay(f.now));
  CHECK(f.state.totals().replays_postponed == 1);
}

TEST_CASE("replay permits: no more than there are, given back when done") {
  const auto permits = std::make_shared<replay_permits>(2);
  auto one = permits->take();
  {
    const auto two = permits->take();
    CHECK(one);
    CHECK(two);
    CHECK_FALSE(permits->take());
    CHECK(permits->taken() == 2);
  }
  auto moved = std::move(one);
  CHECK(permits->taken() == 1);
  moved = permits->take();
  CHECK(permits->taken() == 1);
  moved = replay_permits::permit(nullptr);
  CHECK(permits->taken() == 0);
}
}  // namespace
