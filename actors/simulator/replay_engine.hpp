#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>

#include "actors/simulator/batch_scheduler.hpp"

namespace infernex::simulator {

/// What an engine in virtual time does. All times are milliseconds of the replay's clock.
class replay_engine_events {
 public:
  virtual ~replay_engine_events() = default;
  /// A sequence got its next token; one at its limit is over, and its slot free.
  virtual void on_token(const made_token& made, double at_ms) = 0;
  /// `count` sequences got a token `gap_ms` after the one before it.
  virtual void on_gap(std::uint32_t count, double gap_ms, double at_ms) = 0;
  virtual void on_changes(std::span<const cache_change> changes, double at_ms) = 0;
};

/// An engine in virtual time: the live engine's scheduler, its steps following each other as engine_loop lets them, and
/// quiet steps taken at once. To be called in the order of time; of what happens at the same moment, its own steps
/// last, so that all that arrives then runs in the step that begins then.
class replay_engine {
 public:
  /// `speed` divides the steps' times.
  replay_engine(const settings& values, double speed);

  static constexpr double never = std::numeric_limits<double>::infinity();
  /// When run() is due.
  double next_ms() const { return next_ms_; }
  /// At next_ms(). Tokens that come before it in quiet steps are told then, with their own times: what they tell is
  /// gaps alone.
  void run(replay_engine_events& events);

  /// See batch_scheduler::add.
  errc add(const sequence_shape& shape, double now_ms, replay_engine_events& events, sequence_slot& slot);
  void finish(sequence_slot slot, double now_ms, replay_engine_events& events);
  /// Tokens of its answer by now.
  std::uint32_t answered(sequence_slot slot, double now_ms, replay_engine_events& events);

  /// The beginning of the first step that what comes now can run in, and the quiet steps that will have passed then.
  struct boundary {
    double at_ms = 0;
    std::uint32_t quiet_steps = 0;
  };
  boundary next_step(double now_ms) const;

  engine_load load() const { return scheduler_.load(); }
  const batch_scheduler& scheduler() const { return scheduler_; }
  double speed() const { return speed_; }
  /// Time spent in steps, those at hand not counted.
  double busy_ms() const { return busy_ms_; }

 private:
  enum class phase : std::uint8_t { idle, starting, quiet, stepping };

  void plan(double now_ms);
  void begin(double now_ms);
  void wake(double now_ms);
  void settle(double now_ms, replay_engine_events& events);
  void pass(std::uint32_t steps, replay_engine_events& events);
  void end(replay_engine_events& events);

  batch_scheduler scheduler_;
  double speed_;
  phase phase_ = phase::idle;
  double next_ms_ = never;
  /// When the step at hand, or the first of the quiet ones, began.
  double began_ms_ = 0;
  quiet_run quiet_;
  double busy_ms_ = 0;
  /// When those that were preempted in mid-answer had their last token.
  std::unordered_map<sequence_slot, double> interrupted_;
};

}  // namespace infernex::simulator
