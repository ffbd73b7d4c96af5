#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::router {

/// A place on the load board. `generation` tells its present owner from an earlier one.
struct slot_ref {
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const slot_ref&, const slot_ref&) = default;
};

/// How an engine's KV blocks get to another's (messages/engine_announce.fbs).
struct kv_transfer {
  fb::KvProtocol protocol = fb::KvProtocol::None;
  std::string connector = {};
  std::string engine_id = {};
  std::optional<std::uint16_t> bootstrap_port = {};
  friend bool operator==(const kv_transfer&, const kv_transfer&) = default;
};

/// The LoRA adapters an engine works with at present, by its own metrics; names are sorted.
struct adapter_use {
  std::vector<std::string> running = {};
  std::vector<std::string> waiting = {};
  /// How many it holds at most; unset: it does not say.
  std::optional<std::uint32_t> most = {};

  bool runs(std::string_view adapter) const;
  bool awaits(std::string_view adapter) const;
  bool has_room() const { return most && running.size() + waiting.size() < *most; }
  friend bool operator==(const adapter_use&, const adapter_use&) = default;
};

/// What diagnosis asks for an engine's accelerators, and what is done about it.
struct engine_health {
  fb::VerdictAction asked = fb::VerdictAction::Ok;
  /// Less than what is asked for where too many engines of the model would be out at once, or the operator wants none
  /// of it.
  fb::VerdictAction applied = fb::VerdictAction::Ok;
  /// Its total score is multiplied by this.
  double score_factor = 1;
  /// For people: action, fault pattern, place; and why less is done. Empty: nothing is asked for.
  std::string why = {};

  bool isolated() const { return applied == fb::VerdictAction::Isolate; }
  friend bool operator==(const engine_health&, const engine_health&) = default;
};

/// An engine (or a data-parallel rank of one) as a candidate.
struct endpoint {
  std::string instance;
  std::string url;
  fb::EngineRole role = fb::EngineRole::Aggregated;
  fb::EngineState state = fb::EngineState::Unknown;
  std::string reason;
  slot_ref slot;
  /// The PD group it belongs to, and where it runs; empty: none said.
  std::string group;
  std::string node;
  std::optional<std::uint32_t> block_size;
  /// Tokens a block of the engine's own, where that differs.
  std::optional<std::uint32_t> engine_block_size;
  std::optional<std::uint64_t> total_blocks;
  std::optional<std::uint32_t> max_model_len;
  std::vector<std::string> adapters;
  /// When the engine's process started; a new value means an empty cache.
  std::optional<std::uint64_t> engine_epoch;
  fb::KvHealth kv_health = fb::KvHealth::Absent;
  /// The rank this endpoint is, of an engine with several behind one URL.
  std::optional<std::uint32_t> data_parallel_rank;
  /// Keys and values, sorted by key; each key once.
  std::vector<std::pair<std::string, std::string>> labels = {};
  /// The accelerators it runs on, by their index on `node`.
  std::vector<std::uint32_t> devices = {};
  /// Unset: it takes no part in disaggregation, or nobody said how.
  std::optional<router::kv_transfer> kv_transfer = {};
  /// Unset: its metrics do not say.
  std::optional<adapter_use> adapters_in_use = {};
  engine_health health = {};

  /// Empty if there is none.
  std::string_view label(std::string_view key) const;
  /// `host:port` of the URL.
  std::string_view address() const;
  bool ready() const { return state == fb::EngineState::Ready; }
  bool takes_requests() const { return ready() && !health.isolated(); }
  friend bool operator==(const endpoint&, const endpoint&) = default;
};

/// The engines of one model.
struct model_endpoints {
  std::string model;
  /// Sorted by instance name: decide() searches them by it.
  std::vector<endpoint> endpoints;

  /// Tokens a block for this model's keys: what its engines announce (the smallest, should they differ).
  std::optional<std::uint32_t> block_size() const;
  std::size_t ready_count() const;
  /// Null if there is none of that name.
  const endpoint* find(std::string_view instance) const;
};

/// Who exists: an immutable snapshot, replaced when membership or state changes.
struct topology {
  std::uint64_t version = 0;
  std::map<std::string, model_endpoints, std::less<>> models;

  /// Finds by model name or by the name of an adapter its engines serve; null if unknown.
  const model_endpoints* find(std::string_view model_or_adapter) const;
};

}  // namespace infernex::router
