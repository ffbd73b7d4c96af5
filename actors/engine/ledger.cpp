#include "actors/engine/ledger.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace infernex::engine {

namespace {

/// Up to `room` elements off the front.
template <class T>
std::vector<T> take_front(std::span<const T>& from, std::size_t room) {
  const auto count = std::min(room, from.size());
  std::vector<T> front(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
  from = from.subspan(count);
  return front;
}

}  // namespace

ledger::ledger(ledger_settings settings) : settings_(std::move(settings)), engine_(settings_.health) {
  settings_.message_keys = std::max<std::size_t>(settings_.message_keys, 1);
  if (!settings_.engine.model.empty()) learn_model(settings_.engine.model);
}

void ledger::learn_model(const std::string& model) {
  if (!model_.empty()) return;  // the name is part of subjects and keys: it stays for this agent's life
  model_ = model;
  if (has_kv_events()) mirror_.emplace(mirror_settings{model_, settings_.engine.block_size, settings_.max_blocks});
}

ledger::orders ledger::on_probe(const probe_result& probe) {
  orders result;
  const auto process_start = probe.metrics ? probe.metrics->process_start_seconds : std::nullopt;
  const auto change = engine_.on_probe(probe.health, process_start);
  result.state_changed = change.state;
  const bool model_was_known = !model_.empty();
  if (probe.models) {
    models_ = probe.models;
    learn_model(models_->model);
  }
  if (change.epoch) metrics_.reset();
  result.load = load_from(probe);

  const bool began = change.epoch || (!model_was_known && !model_.empty() && engine_.epoch());
  if (mirror_ && began) {
    // Whatever was cached belongs to a process that is gone.
    mirror_->clear();
    ++generation_;
    stream_health_ = fb::KvHealth::Replaying;
    engine_sequence_.reset();
    result.resync = true;
  }
  result.announce = facts_changed();
  return result;
}

bool ledger::on_events(const event_batch& group) {
  if (!mirror_ || group.generation != generation_) return false;
  if (group.clear_first) mirror_->clear();
  for (const auto& batch : group.batches) {
    for (const auto& event : batch.events) mirror_->apply(event);
    decoder_dropped_ += batch.dropped;
  }
  stream_health_ = group.health;
  engine_sequence_ = group.engine_sequence;
  totals_ = group.totals;
  stream_dropped_ = group.dropped;
  return facts_changed();
}

std::optional<fb::EngineLoadT> ledger::load_from(const probe_result& probe) {
  if (!probe.metrics) return std::nullopt;
  const std::chrono::duration<double> elapsed = probe.at - scraped_at_;
  auto load = load_of(*probe.metrics, metrics_ ? &*metrics_ : nullptr, elapsed.count());
  metrics_ = probe.metrics;
  scraped_at_ = probe.at;
  if (model_.empty()) return std::nullopt;
  load.origin = origin(++load_sequence_);
  load.model = model_;
  load.instance = settings_.engine.instance;
  load.scrape_ms = probe.scrape_ms;
  return load;
}

fb::KvHealth ledger::kv_health() const {
  if (!has_kv_events()) return fb::KvHealth::Absent;
  if (stream_health_ == fb::KvHealth::Live && mirror_ && !mirror_->complete()) return fb::KvHealth::Partial;
  return stream_health_;
}

drop_counts ledger::dropped() const {
  auto total = decoder_dropped_;
  total += stream_dropped_;
  if (mirror_) total += mirror_->dropped();
  return total;
}

ledger::facts ledger::present_facts() const {
  facts now{engine_.state(), engine_.reason(), engine_.epoch(), std::nullopt,
            std::nullopt,    std::nullopt,     kv_health(),     {}};
  const auto other = mirror_ ? mirror_->other_block_size() : std::nullopt;
  if (mirror_) now.block_size = mirror_->block_size();
  if (!now.block_size && metrics_) now.block_size = metrics_->block_size;
  if (!now.block_size) now.block_size = settings_.engine.block_size;
  if (other) {
    now.reason += "; its KV events have blocks of " + std::to_string(*other) + " tokens, not " +
                  std::to_string(now.block_size.value_or(0)) + ": they are not used";
  }
  if (metrics_) now.total_blocks = metrics_->total_blocks;
  if (models_) {
    now.max_model_len = models_->max_model_len;
    now.adapters = models_->adapters;
  }
  return now;
}

bool ledger::facts_changed() { return !model_.empty() && present_facts() != announced_; }

std::unique_ptr<fb::OriginT> ledger::origin(std::uint64_t sequence) const {
  auto from = std::make_unique<fb::OriginT>();
  from->id = "agent/" + settings_.engine.instance;
  from->epoch = settings_.agent_epoch;
  from->sequence = sequence;
  return from;
}

std::optional<fb::EngineAnnounceT> ledger::announcement() {
  if (model_.empty() || engine_.state() == fb::EngineState::Unknown) return std::nullopt;
  announced_ = present_facts();
  const auto& engine = settings_.engine;
  fb::EngineAnnounceT message;
  message.origin = origin(++announce_sequence_);
  message.model = model_;
  message.instance = engine.instance;
  message.url = engine.url;
  message.role = engine.role;
  message.state = announced_.state;
  message.reason = announced_.reason;
  message.engine_epoch = announced_.epoch;
  message.block_size = announced_.block_size;
  message.total_blocks = announced_.total_blocks;
  message.max_model_len = announced_.max_model_len;
  message.kv_health = announced_.kv_health;
  message.kv_sequence = delta_sequence_;
  message.kv_keys = published_keys_;
  message.kv_digest = published_digest_;
  message.node = engine.node;
  message.pd_group = engine.pd_group;
  message.adapters = announced_.adapters;
  return message;
}

fb::KvDeltaT ledger::next_delta() {
  fb::KvDeltaT delta;
  delta.origin = origin(++delta_sequence_);
  delta.model = model_;
  delta.instance = settings_.engine.instance;
  delta.engine_epoch = engine_.epoch();
  delta.engine_sequence = engine_sequence_;
  return delta;
}

std::vector<fb::KvDeltaT> ledger::take_deltas() {
  std::vector<fb::KvDeltaT> deltas;
  if (!mirror_) return deltas;
  const auto change = mirror_->take_difference();
  if (change.empty()) return deltas;
  std::span<const block_key> removed(change.removed);
  std::span<const block_key> added(change.added);
  bool cleared = change.cleared;
  do {
    auto delta = next_delta();
    delta.cleared = std::exchange(cleared, false);
    if (delta.cleared) published_keys_ = published_digest_ = 0;
    delta.removed = take_front(removed, settings_.message_keys);
    // An order within the message, and so across messages: all removals come first.
    if (removed.empty()) delta.added = take_front(added, settings_.message_keys - delta.removed.size());
    for (const auto key : delta.removed) published_digest_ ^= key;
    for (const auto key : delta.added) published_digest_ ^= key;
    published_keys_ += delta.added.size();
    published_keys_ -= delta.removed.size();
    delta.kv_keys = published_keys_;
    delta.kv_digest = published_digest_;
    deltas.push_back(std::move(delta));
  } while (!removed.empty() || !added.empty());
  return deltas;
}

std::vector<fb::KvSnapshotChunkT> ledger::snapshot() {
  const auto keys = mirror_ ? mirror_->all_keys() : std::vector<block_key>{};
  std::span<const block_key> left(keys);
  const auto total = std::max<std::size_t>(1, (keys.size() + settings_.message_keys - 1) / settings_.message_keys);
  std::vector<fb::KvSnapshotChunkT> chunks(total);
  for (std::size_t i = 0; i < total; ++i) {
    auto& chunk = chunks[i];
    chunk.origin = origin(i + 1);
    chunk.model = model_;
    chunk.instance = settings_.engine.instance;
    chunk.engine_epoch = engine_.epoch();
    chunk.as_of = delta_sequence_;
    chunk.index = static_cast<std::uint32_t>(i);
    chunk.total = static_cast<std::uint32_t>(total);
    chunk.keys = take_front(left, settings_.message_keys);
  }
  return chunks;
}

}  // namespace infernex::engine
