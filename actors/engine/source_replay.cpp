#include <algorithm>

#include "actors/engine/source_state.hpp"

// How a stream asks for replays, and what it makes of them.

namespace infernex::engine {

void source_state::postpone_replay(time_point until) {
  ++counts_.replays_postponed;
  due_ = until;
}

std::optional<std::uint64_t> source_state::begin_replay(time_point now) {
  if (!wants_replay(now)) return std::nullopt;
  due_.reset();
  running_ = begun_ = true;
  running_full_ = full_wanted_;
  full_wanted_ = false;
  serves_gap_ = gap_end_.has_value();
  answered_ = false;
  ignoring_ = false;
  started_ = progress_ = now;
  ++counts_.replays;
  // From the last applied batch, not the first missing one: its content tells whether the engine is still
  // the same.
  verifies_ = !running_full_ && next_ > 0;
  asked_ = verifies_ ? next_ - 1 : 0;
  return asked_;
}

/// What else this replay brings was asked for from a place in another stream.
batch_verdict source_state::restart_replayed(time_point now) {
  restarted();
  ignoring_ = true;
  phase_ = phase::replaying;
  want_replay(true, now);
  return batch_verdict::clear_and_drop;
}

/// What follows is asked for again, from the last applied batch on.
batch_verdict source_state::break_off(time_point now) {
  ++broken_;
  broken_at_ = next_;
  ++counts_.replay_failures;
  ignoring_ = true;
  running_full_ = false;  // what it brought is kept
  phase_ = phase::replaying;
  want_replay(false, std::max(now, started_ + limits_.replay_pause));
  return batch_verdict::drop;
}

batch_verdict source_state::on_replayed(std::uint64_t sequence, std::uint64_t fingerprint, time_point now,
                                        const std::optional<publisher_id>& publisher) {
  if (!running_) return batch_verdict::drop;
  progress_ = now;
  confirm(now);
  const bool first = !answered_;
  answered_ = true;
  maybe_no_history_ = false;
  if (ignoring_) return batch_verdict::drop;
  if (publisher_changed(publisher) && next_ > 0 && !(first && running_full_)) return restart_replayed(now);
  if (first && verifies_ && sequence > asked_) return restart_replayed(now);
  if (first && running_full_) {
    partial_ = sequence > 0;
    if (sequence > 0) ++counts_.losses;
    const bool anything = next_ > 0;
    forget();
    applied(sequence, fingerprint);
    return anything ? batch_verdict::clear_and_apply : batch_verdict::apply;
  }
  if (sequence == next_) {
    applied(sequence, fingerprint);
    return batch_verdict::apply;
  }
  if (sequence > next_) return !first && may_ask_again() ? break_off(now) : lose_and_apply(sequence, fingerprint);
  if (!is_contradicted(sequence, fingerprint)) {
    ++counts_.duplicates;
    return batch_verdict::drop;
  }
  return restart_replayed(now);
}

bool source_state::on_replay_end(time_point now) {
  if (!running_) return false;
  running_ = false;
  failures_ = 0;
  confirm(now);
  if (ignoring_) return false;  // another is wanted already
  broken_ = 0;
  broken_at_.reset();
  const bool engine_changed = !answered_ && asked_ > 0;
  if (engine_changed && !running_full_) {
    // The engine does not have the batch we applied last: it has restarted, or keeps no history.
    restarted();
    phase_ = phase::replaying;
    want_replay(true, std::max(now, started_ + limits_.replay_pause));
    return true;
  }
  if (serves_gap_ && gap_end_) {
    // Once an empty history is that of an engine that has just started; twice, that of one that keeps none.
    no_history_ = !answered_ && maybe_no_history_;
    maybe_no_history_ = !answered_;
    accept_any_ = no_history_;
    held_judged_ = !no_history_;
  }
  if (!due_) due_ = now + (phase_ == phase::live ? limits_.check_interval : limits_.first_check);
  go_live(now);
  return false;
}

bool source_state::on_tick(time_point now) {
  stale_ = stale_ || (phase_ == phase::live && now - confirmed_ >= limits_.stale_after);
  if (!running_ || now < replay_deadline()) return false;
  running_ = false;
  ++counts_.replay_failures;
  ++failures_;
  full_wanted_ = full_wanted_ || running_full_;
  auto pause = limits_.replay_pause;
  for (std::uint32_t i = 1; i < failures_ && pause < limits_.max_replay_pause; ++i) pause *= 2;
  if (phase_ == phase::live || failures_ >= limits_.max_replay_failures) {
    // Follow the stream with what there is; try again at leisure.
    if (phase_ != phase::live) {
      accept_any_ = true;
      partial_ = true;
      full_wanted_ = true;
    }
    pause = std::max(std::min(pause, limits_.max_replay_pause), limits_.check_interval);
    phase_ = phase::live;
  }
  due_ = now + std::min(pause, limits_.max_replay_pause);
  return true;
}

source_state::time_point source_state::replay_deadline() const {
  return std::min(progress_ + limits_.replay_timeout, started_ + limits_.max_replay_time);
}

}  // namespace infernex::engine
