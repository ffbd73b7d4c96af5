#include "actors/indexer/source.hpp"

#include <algorithm>

namespace infernex::indexer {

namespace {
constexpr std::uint32_t max_chunks = 4'096;
}

source::source(kv_index& index, std::string instance, const sync_settings& settings, sync_counters& counters,
               time_point now)
    : index_(index),
      instance_(std::move(instance)),
      settings_(settings),
      counters_(counters),
      last_heard_(now),
      not_before_(now),
      give_up_at_(now) {}

std::string_view name(sync_state s) {
  switch (s) {
    case sync_state::exact:
      return "exact";
    case sync_state::syncing:
      return "syncing";
    case sync_state::capped:
      return "capped";
    case sync_state::stale:
      return "stale";
    case sync_state::down:
      return "down";
  }
  return "unknown";
}

sync_state source::state(time_point now) const {
  if (now - last_heard_ >= settings_.silence) return sync_state::stale;
  if (down_) return sync_state::down;
  if (refused_) return sync_state::capped;
  return verified_ ? sync_state::exact : sync_state::syncing;
}

void source::begin_epoch(std::uint64_t epoch) {
  forget_contents();
  epoch_ = epoch;
  announced_ = 0;
  applied_ = 0;
  down_ = false;
  engine_epoch_.reset();
  engine_epoch_at_ = 0;
  behind_.reset();
  snapshot_ = asking::no;
  attempt_ = 0;
  not_before_ = last_heard_;
  collecting_.reset();
  kept_.clear();
  kept_keys_ = 0;
}

void source::forget_contents() {
  index_.clear(instance_);
  verified_ = false;
  refused_ = false;
}

/// False: what came with this engine epoch is of an engine process that is gone. Which of two epochs is the
/// newer one is told by their places in the agent's sequence, not by the engines' clocks.
bool source::follow_engine(std::optional<std::uint64_t> engine_epoch, std::uint64_t at) {
  if (!engine_epoch || engine_epoch == engine_epoch_) return true;
  if (engine_epoch_) {
    if (at < engine_epoch_at_) return false;
    forget_contents();
    down_ = false;
  }
  engine_epoch_ = engine_epoch;
  engine_epoch_at_ = at;
  return true;
}

void source::want(std::string_view reason) {
  if (snapshot_ != asking::no || down_) return;
  snapshot_ = asking::wanted;
  reason_ = reason;
}

void source::compare(std::uint64_t keys, std::uint64_t digest) {
  verified_ = index_.keys_of(instance_) == keys && index_.digest_of(instance_) == digest;
  if (verified_) {
    attempt_ = 0;
  } else if (!down_ && !refused_) {
    ++counters_.mismatches;
    want("mismatch");
  }
}

void source::on_announce(const announcement& said, time_point now) {
  const bool first = epoch_ == 0;
  if (said.epoch < epoch_) return;
  last_heard_ = now;
  if (said.epoch > epoch_)
    begin_epoch(said.epoch);
  else if (said.sequence <= announced_)
    return;
  announced_ = said.sequence;
  if (!follow_engine(said.engine_epoch, said.kv_sequence)) return;
  if (said.holds_nothing && !down_) forget_contents();
  down_ = said.holds_nothing;
  if (snapshot_ != asking::no) return;  // it will tell
  if (said.kv_sequence == applied_) {
    behind_.reset();
    compare(said.kv_keys, said.kv_digest);
  } else if (said.kv_sequence > applied_) {
    if (first) {
      want("first sight");
    } else if (behind_) {
      verified_ = false;
      want("deltas missing");
    } else {
      behind_ = lag{said.kv_sequence, now};
    }
  }
}

void source::on_delta(const delta& change, time_point now) {
  if (change.epoch < epoch_ || (change.epoch == epoch_ && change.sequence <= applied_)) {
    ++counters_.deltas_ignored;
    return;
  }
  last_heard_ = now;
  if (change.epoch > epoch_) begin_epoch(change.epoch);
  if (snapshot_ != asking::no) return keep(change);
  if (change.sequence == applied_ + 1) return apply(change);
  ++counters_.gaps;
  verified_ = false;
  want("gap");
  keep(change);
}

void source::apply(const delta& change) {
  applied_ = change.sequence;
  if (behind_ && applied_ >= behind_->target) behind_.reset();
  ++counters_.deltas_applied;
  const bool current = follow_engine(change.engine_epoch, change.sequence);
  if (!current || down_) {
    verified_ = false;
    return;
  }
  if (change.cleared) forget_contents();
  if (!change.closed) index_.set_closed(instance_, false);
  index_.remove(instance_, change.removed, change.on);
  if (index_.add(instance_, change.added, change.on) != 0) refused_ = true;
  index_.set_closed(instance_, change.closed && !refused_);
  compare(change.kv_keys, change.kv_digest);
}

void source::keep(const delta& change) {
  if (snapshot_ == asking::no) return;  // the engine is down: nothing of it is wanted
  const auto keys = change.removed.size() + change.added.size();
  if (kept_.size() >= settings_.max_kept_deltas || kept_keys_ + keys > settings_.max_kept_keys) {
    ++counters_.deltas_shed;
    return;
  }
  kept_keys_ += keys;
  kept_.push_back({change, {change.removed.begin(), change.removed.end()}, {change.added.begin(), change.added.end()}});
}

void source::apply_kept() {
  while (!kept_.empty() && snapshot_ == asking::no) {
    auto& next = kept_.front();
    if (next.head.sequence > applied_ + 1) {
      ++counters_.gaps;
      verified_ = false;
      want("gap");
      if (snapshot_ != asking::no) return;
    }
    auto change = std::move(next);
    kept_keys_ -= change.removed.size() + change.added.size();
    kept_.pop_front();
    if (change.head.sequence != applied_ + 1) continue;
    change.head.removed = change.removed;
    change.head.added = change.added;
    apply(change.head);
  }
}

void source::on_chunk(const snapshot_chunk& part, time_point now) {
  if (snapshot_ != asking::asked || part.epoch < epoch_) return;
  last_heard_ = now;
  if (part.epoch > epoch_) {
    begin_epoch(part.epoch);
    snapshot_ = asking::asked;
  }
  if (part.as_of < applied_ || part.index >= part.total || part.total > max_chunks) return;
  if (!collecting_ || collecting_->as_of != part.as_of || collecting_->have.size() != part.total) {
    if (collecting_ && part.as_of < collecting_->as_of) return;  // a late part of an earlier answer
    collecting_ = collection{part.as_of, part.engine_epoch, std::vector<bool>(part.total), part.total, {}};
  }
  auto& all = *collecting_;
  if (all.have[part.index]) return;
  if (all.size + part.keys.size() > settings_.max_snapshot_keys) {
    ++counters_.snapshots_refused;
    collecting_.reset();
    return;  // asked for again after the back-off
  }
  give_up_at_ = now + settings_.answer_timeout;
  all.have[part.index] = true;
  auto& keys = all.keys[static_cast<std::size_t>(part.on)];
  keys.insert(keys.end(), part.keys.begin(), part.keys.end());
  all.size += part.keys.size();
  all.closed = all.closed && part.closed;
  if (--all.missing == 0) install();
}

void source::install() {
  const auto all = std::move(*collecting_);
  collecting_.reset();
  snapshot_ = asking::no;
  ++counters_.snapshots_applied;
  const bool current = follow_engine(all.engine_epoch, all.as_of);
  forget_contents();
  applied_ = all.as_of;
  if (behind_ && applied_ >= behind_->target) behind_.reset();
  if (current && !down_) {
    index_.set_closed(instance_, false);  // chunks may come in any order
    for (const auto on : {tier::Device, tier::Host, tier::Disk})
      if (index_.add(instance_, all.keys[static_cast<std::size_t>(on)], on) != 0) refused_ = true;
    index_.set_closed(instance_, all.closed && !refused_);
    verified_ = !refused_;
  }
  apply_kept();
}

void source::on_tick(time_point now) {
  if (behind_ && snapshot_ == asking::no && now - behind_->since >= settings_.patience) {
    verified_ = false;
    want("deltas missing");
  }
  if (refused_ && index_.has_room()) want("room again");
  if (snapshot_ == asking::asked && now >= give_up_at_) {
    collecting_.reset();
    snapshot_ = asking::wanted;
  }
}

void source::on_bus_back(time_point now) {
  last_heard_ = now;
  if (behind_) behind_->since = now;
  if (snapshot_ == asking::asked) snapshot_ = asking::wanted;
  collecting_.reset();
  attempt_ = 0;
  not_before_ = now;
}

bool source::take_request(time_point now) {
  if (!wants_request(now)) return false;
  snapshot_ = asking::asked;
  give_up_at_ = now + settings_.answer_timeout;
  const auto pause = settings_.answer_timeout * (std::int64_t{1} << std::min(attempt_, 16U));
  not_before_ = now + std::min<std::chrono::milliseconds>(pause, settings_.max_backoff);
  ++attempt_;
  ++counters_.snapshots_requested;
  return true;
}

}  // namespace infernex::indexer
