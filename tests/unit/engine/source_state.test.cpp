#include "actors/engine/source_state.hpp"

#include <doctest/doctest.h>

#include "tests/unit/engine/stream_fixture.hpp"

namespace {

using namespace infernex::engine;
using namespace std::chrono_literals;
using verdict = batch_verdict;
using fixture = stream_fixture;

TEST_CASE("a cold stream replays from the start before it reads anything live") {
  fixture f;
  CHECK_FALSE(f.state.reads_live());
  CHECK_FALSE(f.state.caught_up());
  f.run_to(2);
  CHECK(f.state.reads_live());
  CHECK_FALSE(f.state.partial());
  CHECK(f.state.last_sequence() == 2);
  // What was published between the connection and the replay's end comes a second time.
  CHECK(f.live(1) == verdict::drop);
  CHECK(f.live(2) == verdict::drop);
  CHECK(f.live(3) == verdict::apply);
  CHECK(f.live(3) == verdict::drop);
  CHECK(f.state.totals().duplicates == 3);
  CHECK(f.state.totals().restarts == 0);
}

TEST_CASE("a gap is filled by a replay, the batch that showed it is offered again") {
  fixture f;
  f.run_to(4);
  f.pass(500ms);
  CHECK(f.live(8) == verdict::hold);
  CHECK_FALSE(f.state.reads_live());
  REQUIRE(f.asked() == 4);  // the last applied one: it proves that the engine is the same
  CHECK(f.replayed(4) == verdict::drop);
  for (std::uint64_t i = 5; i <= 8; ++i) CHECK(f.replayed(i) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(8) == verdict::drop);
  CHECK(f.live(9) == verdict::apply);
  CHECK_FALSE(f.state.partial());
  CHECK(f.state.totals().gaps == 1);
}

TEST_CASE("a quiet stream is checked: a lost last batch is found, and so is a silent restart") {
  fixture f;
  f.run_to(4);
  CHECK_FALSE(f.asked().has_value());
  f.pass(1s);
  REQUIRE(f.asked() == 4);
  CHECK(f.state.reads_live());  // live batches are read meanwhile
  CHECK(f.replayed(4) == verdict::drop);
  CHECK(f.replayed(5) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  f.pass(9s);
  CHECK_FALSE(f.asked().has_value());
  f.pass(1s);
  REQUIRE(f.asked() == 5);
  CHECK(f.state.on_replay_end(f.now));  // the engine does not have batch 5: it is another one
  CHECK_FALSE(f.state.caught_up());
  CHECK_FALSE(f.asked().has_value());  // not two replays at once
  f.pass(200ms);
  REQUIRE(f.asked() == 0);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.state.caught_up());
  CHECK_FALSE(f.state.partial());
  f.life = 1;
  CHECK(f.live(0) == verdict::apply);
}

TEST_CASE("without a replay socket gaps and restarts clear, and the stream goes on") {
  fixture f(false);
  CHECK(f.state.reads_live());
  CHECK_FALSE(f.asked().has_value());
  CHECK(f.live(0) == verdict::apply);
  CHECK_FALSE(f.state.partial());
  CHECK(f.live(3) == verdict::clear_and_apply);
  CHECK(f.state.partial());
  f.life = 1;
  CHECK(f.live(0) == verdict::clear_and_apply);
  CHECK_FALSE(f.state.partial());
  CHECK(f.state.totals().gaps == 1);
  CHECK(f.state.totals().restarts == 1);

  fixture late(false);
  CHECK(late.live(7) == verdict::apply);
  CHECK(late.state.partial());
}

TEST_CASE("every state of a stream has its name, and its moment") {
  for (std::size_t i = 0; i < static_cast<std::size_t>(stream_state::count_); ++i)
    CHECK(name(static_cast<stream_state>(i)) != "unknown");
  CHECK(name(stream_state::stale) == "stale");

  source_state unstarted({}, true);
  CHECK(unstarted.state() == stream_state::cold);
  fixture f;
  CHECK(f.state.state() == stream_state::cold);
  REQUIRE(f.asked() == 0);
  CHECK(f.state.state() == stream_state::replaying);
  CHECK(f.replayed(0) == verdict::apply);
  CHECK(f.state.state() == stream_state::replaying);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.state.state() == stream_state::live);

  f.pass(500ms);
  CHECK(f.live(3) == verdict::hold);
  CHECK(f.state.state() == stream_state::gap);
  REQUIRE(f.asked() == 0);
  CHECK(f.state.state() == stream_state::gap);
  CHECK(f.replayed(0) == verdict::drop);
  CHECK(f.replayed(2) == verdict::drop);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.state.state() == stream_state::gap);
  f.pass(200ms);
  REQUIRE(f.asked() == 0);
  CHECK(f.replayed(0) == verdict::drop);
  CHECK(f.replayed(2) == verdict::clear_and_apply);  // batch 1 is lost
  CHECK(f.replayed(3) == verdict::apply);
  CHECK_FALSE(f.state.on_replay_end(f.now));
  CHECK(f.live(3) == verdict::drop);
  CHECK(f.state.state() == stream_state::partial);

  f.life = 1;
  CHECK(f.live(0) == verdict::clear_and_hold);
  CHECK(f.state.state() == stream_state::replaying);
}

TEST_CASE("a stream that nothing confirms is stale: silence without a replay socket, or checks that fail") {
  fixture f(false);
  CHECK(f.state.state() == stream_state::live);
  CHECK(f.state.next_deadline() == f.now + 30s);
  CHECK(f.live(0) == verdict::apply);
  f.pass(29s);
  CHECK_FALSE(f.state.on_tick(f.now));
  CHECK(f.state.state() == stream_state::live);
  f.pass(1s);
  CHECK_FALSE(f.state.on_tick(f.now));
  CHECK(f.state.state() == stream_state::stale);
  CHECK(f.state.next_deadline() == source_state::time_point::max());  // nothing more to notice
  CHECK(f.live(1) == verdict::apply);
  CHECK(f.state.state() == stream_state::live);

  fixture checked;
  checked.run_to(2);
  for (int i = 0; i < 10; ++i) {
    checked.pass(10s);
    CHECK_FALSE(checked.state.on_tick(checked.now));
    REQUIRE(checked.asked() == 2);
    CHECK(checked.replayed(2) == verdict::drop);
    CHECK_FALSE(checked.state.on_replay_end(checked.now));
    CHECK(checked.state.state() == stream_state::live);  // quiet, but checked
  }
  checked.pass(10s);
  REQUIRE(checked.asked() == 2);
  checked.pass(20s);
  CHECK(checked.state.on_tick(checked.now));
  CHECK(checked.state.state() == stream_state::stale);
}

TEST_CASE("a new start forgets everything, a damaged batch makes the stream partial") {
  fixture f;
  f.run_to(4);
  f.state.on_damage();
  CHECK(f.state.partial());
  f.state.start(f.now);
  CHECK_FALSE(f.state.partial());
  CHECK_FALSE(f.state.reads_live());
  f.life = 1;
  f.pass(200ms);
  f.run_to(1);
  CHECK(f.state.last_sequence() == 1);
}
}  // namespace
