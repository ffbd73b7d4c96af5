#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <doctest/doctest.h>

#include "actors/engine/source_state.hpp"

namespace infernex::engine {

/// A stream in virtual time. Fingerprints: a batch's sequence, plus 1000 for each life of the engine.
struct stream_fixture {
  explicit stream_fixture(bool can_replay = true) : state({}, can_replay) { state.start(now); }
  source_state::time_point now{};
  source_state state;
  std::uint64_t life = 0;

  void pass(std::chrono::milliseconds time) { now += time; }
  batch_verdict live(std::uint64_t sequence) { return state.on_live(sequence, life * 1000 + sequence, now); }
  batch_verdict replayed(std::uint64_t sequence) { return state.on_replayed(sequence, life * 1000 + sequence, now); }
  std::optional<std::uint64_t> asked() { return state.begin_replay(now); }
  /// A stream that has replayed 0..last and is live.
  void run_to(std::uint64_t last) {
    REQUIRE(asked() == 0);
    for (std::uint64_t i = 0; i <= last; ++i) REQUIRE(replayed(i) == batch_verdict::apply);
    REQUIRE_FALSE(state.on_replay_end(now));
    REQUIRE(state.caught_up());
  }
};

}  // namespace infernex::engine
