#include "actors/engine/source_state.hpp"

#include <algorithm>

namespace infernex::engine {

namespace {

/// Batches whose content is remembered; more than a SUB socket holds back while a replay runs.
constexpr std::size_t remembered_batches = 16'384;

}  // namespace

source_state::source_state(source_limits limits, bool can_replay)
    : limits_(limits), can_replay_(can_replay), memory_(remembered_batches) {}

void source_state::start(time_point now) {
  forget();
  partial_ = false;
  accept_any_ = false;
  gap_end_.reset();
  last_live_.reset();
  failures_ = 0;
  no_history_ = false;
  running_ = false;
  due_.reset();
  if (can_replay_) {
    phase_ = phase::replaying;
    want_replay(true, now);
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

std::optional<std::uint64_t> source_state::begin_replay(time_point now) {
  if (running_ || !due_ || now < *due_ || !replays()) return std::nullopt;
  due_.reset();
  running_ = true;
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

batch_verdict source_state::on_live(std::uint64_t sequence, std::uint64_t fingerprint, time_point now) {
  const bool later_than_live = !last_live_ || sequence > *last_live_;
  if (sequence == next_) {
    last_live_ = sequence;
    accept_any_ = false;
    gap_end_.reset();
    applied(sequence, fingerprint);
    return batch_verdict::apply;
  }
  if (sequence < next_) {
    const bool overlap = later_than_live && !is_contradicted(sequence, fingerprint);
    if (overlap || is_known(sequence, fingerprint)) {
      if (later_than_live) last_live_ = sequence;
      gap_end_.reset();
      ++counts_.duplicates;
      return batch_verdict::drop;
    }
    ++counts_.restarts;
    partial_ = false;
    last_live_.reset();
    forget();
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

batch_verdict source_state::on_replayed(std::uint64_t sequence, std::uint64_t fingerprint, time_point now) {
  if (!running_) return batch_verdict::drop;
  progress_ = now;
  const bool first = !answered_;
  answered_ = true;
  if (ignoring_) return batch_verdict::drop;
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
  ++counts_.restarts;
  partial_ = false;
  last_live_.reset();
  forget();
  ignoring_ = true;
  phase_ = phase::replaying;
  want_replay(true, now);
  return batch_verdict::clear_and_drop;
}

bool source_state::on_replay_end(time_point now) {
  if (!running_) return false;
  running_ = false;
  failures_ = 0;
  if (ignoring_) return false;  // a replay from the start is wanted already
  const bool engine_changed = !answered_ && asked_ > 0;
  if (engine_changed && !running_full_) {
    // The engine does not have the batch we applied last: it has restarted, or keeps no history.
    ++counts_.restarts;
    partial_ = false;
    last_live_.reset();
    forget();
    phase_ = phase::replaying;
    want_replay(true, std::max(now, started_ + limits_.replay_pause));
    return true;
  }
  if (serves_gap_ && gap_end_ && next_ < *gap_end_) {
    accept_any_ = true;
    if (asked_ == 0 && !answered_) no_history_ = true;
  }
  if (!due_) due_ = now + (phase_ == phase::live ? limits_.check_interval : limits_.first_check);
  go_live(now);
  return false;
}

bool source_state::on_tick(time_point now) {
  if (!running_ || now - progress_ < limits_.replay_timeout) return false;
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

source_state::time_point source_state::next_deadline() const {
  if (!replays()) return time_point::max();
  if (running_) return progress_ + limits_.replay_timeout;
  return due_.value_or(time_point::max());
}

}  // namespace infernex::engine
