#include "actors/engine/source_state.hpp"

#include <algorithm>
#include <utility>

namespace infernex::engine {

/// Batches whose content is remembered; more than a SUB socket holds back while a replay runs.
static constexpr std::size_t remembered_batches = 16'384;

source_state::source_state(source_limits limits, bool can_replay)
    : limits_(limits), can_replay_(can_replay), memory_(remembered_batches) {}

void source_state::start(time_point now) {
  forget();
  partial_ = false;
  accept_any_ = false;
  gap_end_.reset();
  held_judged_ = false;
  last_live_.reset();
  failures_ = 0;
  no_history_ = false;
  running_ = false;
  begun_ = false;
  due_.reset();
  publisher_.reset();
  former_publisher_.reset();
  confirm(now);
  if (can_replay_) {
    phase_ = phase::replaying;
    want_replay(true, std::max(now, started_ + limits_.replay_pause));
  } else {
    go_live(now);
  }
}

/// Nothing is applied any more.
void source_state::forget() {
  next_ = 0;
  std::ranges::fill(memory_, memory{});
}

source_state::memory& source_state::remembered(std::uint64_t sequence) { return memory_[sequence % memory_.size()]; }

bool source_state::is_known(std::uint64_t sequence, std::uint64_t fingerprint) {
  const auto& entry = remembered(sequence);
  return entry.used && entry.sequence == sequence && entry.fingerprint == fingerprint;
}

bool source_state::is_contradicted(std::uint64_t sequence, std::uint64_t fingerprint) {
  const auto& entry = remembered(sequence);
  return entry.used && entry.sequence == sequence && entry.fingerprint != fingerprint;
}

/// Known from the replay that ran while it waited in its socket. What is older than anything a socket holds
/// is of another life.
bool source_state::is_overlap(std::uint64_t sequence, std::uint64_t fingerprint) {
  const bool later_than_live = !last_live_ || sequence > *last_live_;
  return later_than_live && next_ - sequence <= memory_.size() && !is_contradicted(sequence, fingerprint);
}

bool source_state::publisher_changed(const std::optional<publisher_id>& publisher) {
  if (!publisher || publisher == publisher_) return false;
  const bool changed = publisher_.has_value();
  former_publisher_ = publisher_;
  publisher_ = publisher;
  return changed;
}

/// What is applied is what the engine has, as far as can be told.
void source_state::confirm(time_point now) {
  confirmed_ = now;
  stale_ = false;
}

stream_state source_state::state() const {
  if (phase_ == phase::cold || (phase_ == phase::replaying && !begun_)) return stream_state::cold;
  if (phase_ == phase::replaying) {
    const bool from_start = full_wanted_ || (running_ && running_full_) || next_ == 0;
    return from_start ? stream_state::replaying : stream_state::gap;
  }
  if (stale_) return stream_state::stale;
  if (partial_) return stream_state::partial;
  return full_wanted_ ? stream_state::replaying : stream_state::live;
}

void source_state::applied(std::uint64_t sequence, std::uint64_t fingerprint) {
  ++counts_.batches;
  next_ = sequence + 1;
  remembered(sequence) = {sequence, fingerprint, true};
}

void source_state::want_replay(bool from_start, time_point not_before) {
  full_wanted_ = full_wanted_ || from_start;
  due_ = not_before;
}

/// Batches before this one are gone for good; what was applied before them may be stale.
batch_verdict source_state::lose_and_apply(std::uint64_t sequence, std::uint64_t fingerprint) {
  ++counts_.losses;
  partial_ = true;
  const bool anything = next_ > 0;
  forget();
  applied(sequence, fingerprint);
  return anything ? batch_verdict::clear_and_apply : batch_verdict::apply;
}

void source_state::go_live(time_point now) {
  phase_ = phase::live;
  if (can_replay_ && !due_) due_ = now + limits_.first_check;
}

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
  asked_ = running_full_ || next_ == 0 ? 0 : next_ - 1;
  return asked_;
}

void source_state::restarted() {
  ++counts_.restarts;
  partial_ = false;
  last_live_.reset();
  forget();
}

batch_verdict source_state::restart_live(std::uint64_t sequence, std::uint64_t fingerprint, time_point now) {
  restarted();
  if (!replays()) {
    last_live_ = sequence;
    partial_ = sequence > 0;
    applied(sequence, fingerprint);
    return batch_verdict::clear_and_apply;
  }
  phase_ = phase::replaying;
  gap_end_ = sequence;
  want_replay(true, std::max(now, started_ + limits_.replay_pause));
  return batch_verdict::clear_and_hold;
}

batch_verdict source_state::on_live(std::uint64_t sequence, std::uint64_t fingerprint, time_point now,
                                    const std::optional<publisher_id>& publisher) {
  if (publisher && publisher == former_publisher_) {
    ++counts_.duplicates;
    return batch_verdict::drop;
  }
  if (std::exchange(held_judged_, false) && !is_known(sequence, fingerprint)) {
    ++counts_.restarts;
    return batch_verdict::renew;
  }
  confirm(now);
  if (publisher_changed(publisher) && next_ > 0) return restart_live(sequence, fingerprint, now);
  if (sequence == next_) {
    last_live_ = sequence;
    accept_any_ = false;
    gap_end_.reset();
    applied(sequence, fingerprint);
    return batch_verdict::apply;
  }
  if (sequence < next_) {
    const bool overlap = is_overlap(sequence, fingerprint);
    if (!overlap && !is_known(sequence, fingerprint)) return restart_live(sequence, fingerprint, now);
    if (overlap) last_live_ = sequence;
    gap_end_.reset();
    ++counts_.duplicates;
    return batch_verdict::drop;
  }
  if (accept_any_ || !replays()) {
    if (!accept_any_) ++counts_.gaps;
    accept_any_ = false;
    gap_end_.reset();
    last_live_ = sequence;
    return lose_and_apply(sequence, fingerprint);
  }
  ++counts_.gaps;
  gap_end_ = sequence;
  phase_ = phase::replaying;
  want_replay(false, std::max(now, started_ + limits_.replay_pause));
  return batch_verdict::hold;
}

/// What else this replay brings was asked for from a place in another stream.
batch_verdict source_state::restart_replayed(time_point now) {
  restarted();
  ignoring_ = true;
  phase_ = phase::replaying;
  want_replay(true, now);
  return batch_verdict::clear_and_drop;
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
  if (sequence > next_) return lose_and_apply(sequence, fingerprint);
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
  if (ignoring_) return false;  // a replay from the start is wanted already
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

source_state::time_point source_state::next_deadline() const {
  auto next = phase_ == phase::live && !stale_ ? confirmed_ + limits_.stale_after : time_point::max();
  if (!replays()) return next;
  if (running_) return std::min(next, replay_deadline());
  return std::min(next, due_.value_or(time_point::max()));
}

}  // namespace infernex::engine
