#include "actors/engine/source_state.hpp"

#include <doctest/doctest.h>

#include "actors/engine/replay_permits.hpp"

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
