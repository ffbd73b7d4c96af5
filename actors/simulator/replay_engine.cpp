#include "actors/simulator/replay_engine.hpp"

#include <utility>

namespace infernex::simulator {

replay_engine::replay_engine(const settings& values, double speed) : scheduler_(values), speed_(speed) {}

void replay_engine::begin(double now_ms) {
  began_ms_ = now_ms;
  const auto plan = scheduler_.begin_step();
  for (const auto slot : scheduler_.preempted())
    if (scheduler_.answered(slot) != 0) interrupted_.emplace(slot, now_ms);
  phase_ = plan ? phase::stepping : phase::idle;
  next_ms_ = plan ? now_ms + plan->milliseconds / speed_ : never;
}

void replay_engine::plan(double now_ms) {
  quiet_ = scheduler_.quiet();
  if (quiet_.steps == 0) return begin(now_ms);
  phase_ = phase::quiet;
  began_ms_ = now_ms;
  next_ms_ = now_ms;
  for (std::uint32_t step = 0; step < quiet_.steps; ++step) next_ms_ += scheduler_.milliseconds(quiet_, step) / speed_;
}

void replay_engine::pass(std::uint32_t steps, replay_engine_events& events) {
  for (std::uint32_t step = 0; step < steps; ++step) {
    const auto gap = scheduler_.milliseconds(quiet_, step) / speed_;
    began_ms_ += gap;
    busy_ms_ += gap;
    events.on_gap(quiet_.decoding, gap, began_ms_);
  }
  scheduler_.advance(steps);
}

void replay_engine::settle(double now_ms, replay_engine_events& events) {
  if (phase_ != phase::quiet) return;
  std::uint32_t over = 0;
  for (double at = began_ms_; over < quiet_.steps; ++over) {
    at += scheduler_.milliseconds(quiet_, over) / speed_;
    if (at >= now_ms) break;
  }
  pass(over, events);
  begin(began_ms_);  // the step at hand, which whoever comes now was too late for
}

void replay_engine::end(replay_engine_events& events) {
  const auto at = next_ms_;
  busy_ms_ += at - began_ms_;
  std::uint32_t decoded = 0;
  for (const auto& made : scheduler_.end_step()) {
    if (made.decoded) {
      // The first token of an answer whose prompt came with its KV follows none.
      decoded += made.answered > 1 ? 1 : 0;
    } else if (made.answered > 1) {
      if (const auto before = interrupted_.extract(made.slot)) events.on_gap(1, at - before.mapped(), at);
    }
    if (made.at_limit) scheduler_.finish(made.slot);
    events.on_token(made, at);
  }
  if (decoded != 0) events.on_gap(decoded, at - began_ms_, at);
  if (const auto changes = scheduler_.cache().changes(); !changes.empty()) {
    events.on_changes(changes, at);
    scheduler_.forget_changes();
  }
}

void replay_engine::run(replay_engine_events& events) {
  const auto now = next_ms_;
  switch (phase_) {
    case phase::idle:
      break;
    case phase::starting:
      plan(now);
      break;
    case phase::quiet:
      pass(quiet_.steps, events);
      begin(now);
      break;
    case phase::stepping:
      end(events);
      plan(now);
      break;
  }
}

void replay_engine::wake(double now_ms) {
  if (phase_ != phase::idle) return;
  phase_ = phase::starting;
  next_ms_ = now_ms;
}

errc replay_engine::add(const sequence_shape& shape, double now_ms, replay_engine_events& events, sequence_slot& slot) {
  settle(now_ms, events);
  const auto failed = scheduler_.add(shape, slot);
  if (failed == errc::none) wake(now_ms);
  return failed;
}

void replay_engine::finish(sequence_slot slot, double now_ms, replay_engine_events& events) {
  settle(now_ms, events);
  interrupted_.erase(slot);
  scheduler_.finish(slot);
}

replay_engine::boundary replay_engine::next_step(double now_ms) const {
  if (phase_ == phase::stepping) return {next_ms_, 0};
  if (phase_ != phase::quiet) return {now_ms, 0};
  boundary next{began_ms_, 0};
  while (next.at_ms < now_ms || next.quiet_steps == 0)
    next.at_ms += scheduler_.milliseconds(quiet_, next.quiet_steps++) / speed_;
  return next;
}

std::uint32_t replay_engine::answered(sequence_slot slot, double now_ms, replay_engine_events& events) {
  settle(now_ms, events);
  return scheduler_.answered(slot);
}

}  // namespace infernex::simulator
