#pragma once

#include <functional>
#include <optional>

#include "actors/engine/event_batch.hpp"
#include "actors/engine/ledger.hpp"
#include "actors/engine/parity.hpp"

namespace infernex::engine {

/// When an engine is probed, and for how long: once in each of its lives, as soon as it is ready and its events are
/// followed. Pure: the questions go to `ask`, whose answers come back through on_answer.
class parity_run {
 public:
  using time_point = parity_probe::time_point;
  /// A number that its answer must bring back, and the question.
  using asker = std::function<void(std::uint64_t probe, http_call question)>;

  /// `seed`: another for every agent and each of its lives, so that no two send an engine the same prompt: of one that
  /// it has cached it publishes nothing.
  parity_run(bool enabled, std::uint64_t seed, asker ask) : enabled_(enabled), seed_(seed), ask_(std::move(ask)) {}

  /// Each returns the verdict of a probe that has just ended.
  using ended = std::optional<parity_verdict>;
  /// After each probe of the engine's health, and in turn.
  ended follow(const ledger& book, const discovery::engine_descriptor& engine, time_point now);
  ended on_events(const event_batch& group, time_point now);
  ended on_answer(std::uint64_t probe, unsigned status, const std::string& body, time_point now);

 private:
  ended go_on();

  bool enabled_;
  std::uint64_t seed_;
  asker ask_;
  std::optional<parity_probe> probe_;
  bool asked_ = false;
  std::uint64_t number_ = 0;
  std::optional<std::uint64_t> probed_epoch_;
};

}  // namespace infernex::engine
