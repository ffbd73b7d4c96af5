#include "actors/engine/source_state.hpp"

#include <doctest/doctest.h>

namespace {

using namespace infernex::engine;
using namespace std::chrono_literals;
using verdict = batch_verdict;

/// A stream in virtual time. Fingerprints: a batch's sequence, plus 1000 for each life of the engine.
struct fixture {
  explicit fixture(bool can_replay = true) : state({}, can_replay) { state.start(now); }
  source_state::time_point now{};
  source_state state;
  std::uint64_t life = 0;

  void pass(std::chrono::milliseconds time) { now += time; }
  verdict live(std::uint64_t sequence) { return state.on_live(sequence, life * 1000 + sequence, now); }
  verdict replayed(std::uint64_t sequence) { return state.on_replayed(sequence, life * 1000 + sequence, now); }
  std::optional<std::uint64_t> asked() { return state.begin_replay(now); }
  /// A stream that has replayed 0..last and is live.
  void run_to(std::uint64_t last) {
    REQUIRE(asked() == 0);
    for (std::uint64_t i = 0; i <= last; ++i) REQUIRE(replayed(i) == verdict::apply);
    REQUIRE_FALSE(state.on_replay_end(now));
    REQUIRE(state.caught_up());
  }
};

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

TEST_CASE("a replay that begins too late means lost history: clear, go on, partial") {
  fixture f;
  f.run_to(4);
  f.pass(500ms);
  CHECK(f.live(50) == verdict::hold);
  REQUIRE(f.asked() == 4);
  CHECK(f.replayed(20) == verdict::clear_and_apply);
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

TEST_CASE("the missing batch alone is enough for a replay, if the engine no longer has the one before") {
  fixture f;
  f.run_to(4);
  f.pass(500ms);
  CHECK(f.live(6) == verdict::hold);
  REQUIRE(f.asked() == 4);
  CHECK(f.replayed(5) == verdict::apply);
  CHECK(f.replayed(6) == verdict::apply);
  CHECK_FALSE(f.state.partial());
}

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
  for (std::uint64_t i = 1; i <= 13; ++i) CHECK(f.replayed(i) == verdict::apply);
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
  CHECK(f.live(6) == verdict::apply);
  CHECK(f.state.partial());
  f.pass(60s);
  CHECK_FALSE(f.asked().has_value());
  CHECK(f.live(7) == verdict::apply);
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
  f.run_to(1);
  CHECK(f.state.last_sequence() == 1);
}

}  // namespace
