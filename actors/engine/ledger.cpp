#include "actors/engine/ledger.hpp"

#include <algorithm>
#include <utility>

namespace infernex::engine {

namespace {

/// What does not change while the agent runs.
void say_as_configured(const discovery::engine_descriptor& engine, fb::EngineAnnounceT& message) {
  for (const auto& [key, value] : engine.labels) {
    auto& label = *message.labels.emplace_back(std::make_unique<fb::LabelT>());
    label.key = key;
    label.value = value;
  }
  message.devices = engine.devices;
  if (!engine.kv_transfer) return;
  message.kv_transfer = std::make_unique<fb::KvTransferT>();
  message.kv_transfer->protocol = engine.kv_transfer->protocol;
  message.kv_transfer->connector = engine.kv_transfer->connector;
  message.kv_transfer->engine_id = engine.kv_transfer->engine_id;
  message.kv_transfer->bootstrap_port = engine.kv_transfer->bootstrap_port;
}

}  // namespace

ledger::ledger(ledger_settings settings) : settings_(std::move(settings)), engine_(settings_.health) {
  settings_.message_keys = std::max<std::size_t>(settings_.message_keys, 1);
  if (!settings_.engine.model.empty()) learn_model(settings_.engine.model);
}

std::optional<std::uint32_t> ledger::canonical_block_size() const {
  return settings_.engine.block_size ? settings_.engine.block_size : settings_.canonical_block_size;
}

void ledger::learn_model(const std::string& model) {
  if (!model_.empty()) return;  // the name is part of subjects and keys: it stays for this agent's life
  model_ = model;
  if (has_kv_events()) mirror_.emplace(mirror_settings{model_, canonical_block_size(), settings_.max_blocks});
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
    forget_blocks();
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
  if (group.clear_first) forget_blocks();
  for (const auto& batch : group.batches) {
    dropped_ += batch.dropped;
    if (is_of_other_rank(batch)) {
      ++dropped_[drop_reason::other_rank];
      other_rank_ = batch.data_parallel_rank;
      continue;
    }
    own_rank_seen_ = true;
    for (const auto& event : batch.events) mirror_->apply(event);
  }
  stream_health_ = group.health;
  engine_sequence_ = group.engine_sequence;
  totals_ = group.totals;
  stream_dropped_ = group.dropped;
  return facts_changed();
}

void ledger::forget_blocks() {
  mirror_->clear();
  own_rank_seen_ = false;
  other_rank_.reset();
}

bool ledger::is_of_other_rank(const kv_event_batch& batch) const {
  const auto& rank = settings_.engine.data_parallel_rank;
  return rank && batch.data_parallel_rank && *batch.data_parallel_rank != std::int64_t{*rank};
}

bool ledger::set_parity_problem(std::string problem) {
  parity_problem_ = std::move(problem);
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
  const bool lacks_some = (mirror_ && !mirror_->complete()) || only_other_ranks();
  if (stream_health_ == fb::KvHealth::Live && lacks_some) return fb::KvHealth::Partial;
  return stream_health_;
}

drop_counts ledger::dropped() const {
  auto total = dropped_;
  total += stream_dropped_;
  if (mirror_) total += mirror_->dropped();
  return total;
}

ledger::facts ledger::present_facts() const {
  facts now;
  now.state = engine_.state();
  now.reason = engine_.reason();
  now.epoch = engine_.epoch();
  now.kv_health = kv_health();
  now.parity_problem = parity_problem_;
  // Events say it best; metrics are a hint until there are some.
  if (mirror_) now.engine_block_size = mirror_->engine_block_size();
  if (!now.engine_block_size && metrics_) now.engine_block_size = metrics_->block_size;
  now.block_size = canonical_block_size() ? canonical_block_size() : now.engine_block_size;
  if (const auto other = mirror_ ? mirror_->other_block_size() : std::nullopt) {
    now.reason += "; its KV events have blocks of " + std::to_string(*other) + " tokens after blocks of " +
                  std::to_string(now.engine_block_size.value_or(0)) + ": they are not used";
  }
  if (only_other_ranks()) {
    now.reason += "; its KV events are of data-parallel rank " + std::to_string(*other_rank_) + ", not " +
                  std::to_string(settings_.engine.data_parallel_rank.value_or(0)) + ": they are not used";
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
  message.kv_keys = published_.keys;
  message.kv_digest = published_.digest;
  message.node = engine.node;
  message.pd_group = engine.pd_group;
  message.adapters = announced_.adapters;
  message.engine_block_size = announced_.engine_block_size;
  message.data_parallel_rank = engine.data_parallel_rank;
  message.parity_problem = announced_.parity_problem;
  say_as_configured(engine, message);
  return message;
}

std::vector<fb::KvDeltaT> ledger::take_deltas() {
  if (!mirror_) return {};
  auto deltas = deltas_of(mirror_->take_difference(), published_, settings_.message_keys);
  for (auto& delta : deltas) {
    delta.origin = origin(++delta_sequence_);
    delta.model = model_;
    delta.instance = settings_.engine.instance;
    delta.engine_epoch = engine_.epoch();
    delta.engine_sequence = engine_sequence_;
  }
  return deltas;
}

std::vector<fb::KvSnapshotChunkT> ledger::snapshot() {
  const auto tiers = mirror_ ? mirror_->all_keys() : std::vector<tier_keys>{};
  auto chunks = chunks_of(tiers, !mirror_ || mirror_->closed(), settings_.message_keys);
  for (auto& chunk : chunks) {
    chunk.origin = origin(chunk.index + 1);
    chunk.model = model_;
    chunk.instance = settings_.engine.instance;
    chunk.engine_epoch = engine_.epoch();
    chunk.as_of = delta_sequence_;
  }
  return chunks;
}

}  // namespace infernex::engine
