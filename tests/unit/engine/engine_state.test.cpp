#include "actors/engine/engine_state.hpp"

#include <doctest/doctest.h>

namespace {

using namespace infernex;
using namespace infernex::engine;
using namespace std::chrono_literals;
using state = fb::EngineState;

constexpr std::uint64_t second_ns = 1'000'000'000;

/// An engine probed in virtual time.
struct fixture {
  engine_state engine{health_limits{}};
  std::chrono::milliseconds now{0};

  engine_state::change probe(probe_outcome outcome, unsigned status = 0, std::optional<double> start = std::nullopt) {
    const std::uint64_t wall = 2'000'000'000 * second_ns + static_cast<std::uint64_t>(now.count()) * 1'000'000;
    auto change = engine.on_probe({outcome, status, wall}, start);
    now += probe_pause({}, engine.failures_in_a_row());
    return change;
  }
  engine_state::change ready(std::optional<double> start = std::nullopt) {
    return probe(probe_outcome::answered, 200, start);
  }
  engine_state::change loading() { return probe(probe_outcome::answered, 503); }
  engine_state::change refused() { return probe(probe_outcome::refused); }
  engine_state::change failed() { return probe(probe_outcome::failed); }
};

TEST_CASE("a loading engine is starting, reported once; then it is ready with an epoch") {
  fixture f;
  CHECK(f.engine.state() == state::Unknown);
  CHECK(f.loading().state);
  CHECK(f.engine.state() == state::Starting);
  CHECK_FALSE(f.engine.epoch().has_value());
  for (int i = 0; i < 5; ++i) CHECK_FALSE(f.loading().state);
  const auto change = f.ready(1.7634e9);
  CHECK(change.state);
  CHECK(change.epoch);
  CHECK(f.engine.epoch() == 1'763'400'000ULL * second_ns);
  CHECK_FALSE(f.ready(1.7634e9).epoch);
}

TEST_CASE("an engine killed at the worst moment is down within one second") {
  fixture f;
  f.ready();
  const auto killed_at = f.now - 500ms;  // just after a probe that was answered
  bool down = false;
  while (!down) {
    const auto probed_at = f.now;
    down = f.refused().state;
    REQUIRE(probed_at - killed_at <= 1s);
  }
  CHECK(f.engine.state() == state::Down);
  CHECK(f.engine.reason() == "connection refused");
}

TEST_CASE("one refusal or two failures are not down, an answer forgives them") {
  fixture f;
  f.ready();
  f.refused();
  CHECK(f.engine.state() == state::Ready);
  f.ready();
  f.failed();
  f.failed();
  CHECK(f.engine.state() == state::Ready);
  CHECK_FALSE(f.ready().epoch);
  f.failed();
  f.refused();
  f.failed();
  CHECK(f.engine.state() == state::Down);
  CHECK(f.engine.reason() == "/health does not answer");
}

TEST_CASE("back from down is a new epoch; a hang of the same process is not") {
  fixture f;
  f.ready();
  const auto first = f.engine.epoch();
  f.refused();
  f.refused();
  CHECK(f.ready().epoch);
  CHECK(f.engine.epoch() > first);

  fixture hung;
  hung.ready(1.7634e9);
  for (int i = 0; i < 3; ++i) hung.failed();
  CHECK(hung.engine.state() == state::Down);
  const auto change = hung.ready(1.7634e9);
  CHECK(change.state);
  CHECK_FALSE(change.epoch);
  // Refused means that the process was gone, whatever a coarse clock says.
  hung.refused();
  hung.refused();
  CHECK(hung.ready(1.7634e9).epoch);
}

TEST_CASE("a restart between two probes shows in the process's start time") {
  fixture f;
  f.ready();
  const auto first = f.engine.epoch();
  CHECK_FALSE(f.ready(1.7634e9).epoch);  // the start time becomes known: the same process
  CHECK(f.engine.epoch() == first);
  CHECK(f.ready(1.76340001e9).epoch);
  CHECK(f.engine.epoch() > first);
  CHECK_FALSE(f.ready().epoch);
}

TEST_CASE("a ready engine that answers 503 is starting again, other answers are down") {
  fixture f;
  f.ready();
  f.loading();
  CHECK(f.engine.state() == state::Starting);
  CHECK(f.ready().epoch);
  f.probe(probe_outcome::answered, 404);
  CHECK(f.engine.state() == state::Down);
  CHECK(f.engine.reason() == "/health answers 404");
}

}  // namespace
