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
  failures_ = broken_ = 0;
  broken_at_.reset();
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
    const bool from_start = full_wanted_ || runs_full() || next_ == 0;
    return from_start ? stream_state::replaying : stream_state::gap;
  }
  if (stale_) return stream_state::stale;
  if (partial_) return stream_state::partial;
  return caught_up() ? stream_state::live : stream_state::replaying;
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

void source_state::restarted() {
  ++counts_.restarts;
  partial_ = false;
  last_live_.reset();
  broken_at_.reset();
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

source_state::time_point source_state::next_deadline() const {
  auto next = phase_ == phase::live && !stale_ ? confirmed_ + limits_.stale_after : time_point::max();
  if (!replays()) return next;
  if (running_) return std::min(next, replay_deadline());
  return std::min(next, due_.value_or(time_point::max()));
}

}  // namespace infernex::engine
