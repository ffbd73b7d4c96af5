#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/discovery/engine_descriptor.hpp"
#include "actors/engine/engine_state.hpp"
#include "actors/engine/event_batch.hpp"
#include "actors/engine/kv_deltas.hpp"
#include "actors/engine/mirror.hpp"
#include "actors/engine/probe_result.hpp"

namespace infernex::engine {

struct ledger_settings {
  discovery::engine_descriptor engine;
  health_limits health;
  /// Start of this agent, nanoseconds since 1970; every message carries it.
  std::uint64_t agent_epoch = 0;
  std::uint64_t max_blocks = 4'000'000;
  /// Tokens a block of the keys, where the descriptor does not say; unset: as the engine has them.
  std::optional<std::uint32_t> canonical_block_size;
  /// Block keys a delta or snapshot chunk may carry.
  std::size_t message_keys = 60'000;
};

/// Everything an agent knows of one engine, and the messages that say so. Pure: the actor around it moves
/// messages and nothing else.
class ledger {
 public:
  explicit ledger(ledger_settings settings);

  /// What a probe leads to.
  struct orders {
    /// A fact of the announcement has changed: announce at once.
    bool announce = false;
    bool state_changed = false;
    /// Follow the engine's KV events from the start, under generation().
    bool resync = false;
    std::optional<fb::EngineLoadT> load;
  };
  orders on_probe(const probe_result& probe);
  /// True: a fact of the announcement has changed.
  bool on_events(const event_batch& group);

  /// What the parity probe found wrong, one line for people; empty: nothing. True: a fact has changed.
  bool set_parity_problem(std::string problem);

  /// What the set of blocks has become since the last call, as numbered deltas; empty if nothing changed.
  std::vector<fb::KvDeltaT> take_deltas();
  /// Nothing until the model is known and the engine has been probed.
  std::optional<fb::EngineAnnounceT> announcement();
  /// The whole mirror. Precondition: take_deltas() has been called (and published) since the last change.
  std::vector<fb::KvSnapshotChunkT> snapshot();

  const std::string& model() const { return model_; }
  const engine_state& engine() const { return engine_; }
  std::uint64_t generation() const { return generation_; }
  /// What the engine's metrics and model list say, where they do.
  std::optional<std::uint32_t> metrics_block_size() const { return metrics_ ? metrics_->block_size : std::nullopt; }
  std::optional<std::uint32_t> max_model_len() const { return models_ ? models_->max_model_len : std::nullopt; }
  fb::KvHealth kv_health() const;
  std::uint64_t keys() const { return mirror_ ? mirror_->keys() : 0; }
  std::size_t parked() const { return mirror_ ? mirror_->parked() : 0; }
  std::size_t mirror_bytes() const { return mirror_ ? mirror_->bytes() : 0; }
  drop_counts dropped() const;
  const source_state::counts& stream_totals() const { return totals_; }

 private:
  /// What an announcement says besides numbers that change all the time.
  struct facts {
    fb::EngineState state = fb::EngineState::Unknown;
    std::string reason;
    std::optional<std::uint64_t> epoch;
    std::optional<std::uint32_t> block_size;
    std::optional<std::uint32_t> engine_block_size;
    std::optional<std::uint64_t> total_blocks;
    std::optional<std::uint32_t> max_model_len;
    fb::KvHealth kv_health = fb::KvHealth::Absent;
    std::vector<std::string> adapters;
    std::string parity_problem;
    friend bool operator==(const facts&, const facts&) = default;
  };
  facts present_facts() const;
  bool facts_changed();
  /// There are events, and all of them are of ranks that are not followed.
  bool only_other_ranks() const { return other_rank_ && !own_rank_seen_; }
  bool has_kv_events() const { return !settings_.engine.kv_events.empty(); }
  std::optional<std::uint32_t> canonical_block_size() const;
  void learn_model(const std::string& model);
  std::optional<fb::EngineLoadT> load_from(const probe_result& probe);
  bool is_of_other_rank(const kv_event_batch& batch) const;
  void forget_blocks();
  std::unique_ptr<fb::OriginT> origin(std::uint64_t sequence) const;

  ledger_settings settings_;
  engine_state engine_;
  std::string model_;
  std::optional<model_list> models_;
  std::optional<mirror> mirror_;
  std::uint64_t generation_ = 0;
  fb::KvHealth stream_health_ = fb::KvHealth::Replaying;
  std::optional<std::uint64_t> engine_sequence_;
  // Since the mirror was cleared: batches of the followed rank came, and the last other rank.
  bool own_rank_seen_ = false;
  std::optional<std::int64_t> other_rank_;
  source_state::counts totals_;
  // By the decoder, and here.
  drop_counts dropped_;
  drop_counts stream_dropped_;
  std::string parity_problem_;

  std::optional<engine_metrics> metrics_;
  std::chrono::steady_clock::time_point scraped_at_;

  facts announced_;
  std::uint64_t announce_sequence_ = 0;
  std::uint64_t load_sequence_ = 0;
  std::uint64_t delta_sequence_ = 0;
  published_set published_;
};

}  // namespace infernex::engine
