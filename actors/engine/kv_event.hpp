#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::engine {

inline constexpr std::size_t kv_tiers = 3;
static_assert(static_cast<std::size_t>(fb::KvTier::MAX) + 1 == kv_tiers);

/// New blocks in an engine's cache, in the order of the prompt. Not tied to any engine's wire format.
struct stored_blocks {
  /// The engine's own block hashes: opaque, unique within one life of the engine.
  std::vector<std::uint64_t> hashes;
  /// Hash of the block before the first one; unset at the start of a prompt.
  std::optional<std::uint64_t> parent;
  /// block_size tokens for each hash; empty when a tier other than the GPU repeats known blocks.
  std::vector<std::uint32_t> tokens;
  std::uint32_t block_size = 0;
  fb::KvTier tier = fb::KvTier::Device;
  /// LoRA adapter; empty for the base model.
  std::string adapter;
  /// Cache salt of the request; only ever set at the start of a prompt.
  std::string salt;
  /// What else a block depends on (images, prompt embeddings), one entry a block; empty if no block does.
  std::vector<std::string> extras;
  /// KV cache group of a hybrid model, and the kind of attention it serves, where the engine says.
  std::optional<std::uint32_t> group;
  std::string attention_kind;

  friend bool operator==(const stored_blocks&, const stored_blocks&) = default;
};

/// Blocks that left one tier of the cache.
struct removed_blocks {
  std::vector<std::uint64_t> hashes;
  fb::KvTier tier = fb::KvTier::Device;
  std::optional<std::uint32_t> group;

  friend bool operator==(const removed_blocks&, const removed_blocks&) = default;
};

/// The whole cache was emptied, all tiers.
struct all_cleared {
  friend bool operator==(const all_cleared&, const all_cleared&) = default;
};

using kv_event = std::variant<stored_blocks, removed_blocks, all_cleared>;

/// Whether blocks of this attention kind hold every token of a prefix, so that caching them means that the
/// prefix need not be computed. Empty (the engine does not say) counts as full attention.
bool holds_every_token(std::string_view attention_kind);

/// Why something an engine published had no effect. Names are metrics labels.
enum class drop_reason : std::uint8_t {
  /// A whole batch is no valid msgpack, or has no list of events.
  malformed_batch,
  /// An event lacks a required field, or has one of the wrong type.
  malformed_event,
  /// An event of a kind we do not know.
  unknown_event,
  /// A storage medium, or locality, we do not know.
  unknown_medium,
  /// A group of a hybrid model whose blocks do not hold every token.
  sparse_group,
  /// Blocks of another size than the engine began with.
  block_size_mismatch,
  /// A removal, or a copy without tokens, of a block we never heard of.
  unknown_block,
  /// Too many blocks wait for a parent that never came.
  parking_full,
  /// The mirror holds as many blocks as it may.
  mirror_full,
  /// A whole batch of another data-parallel rank than the agent follows.
  other_rank,
  /// ZMQ frames that are neither a batch nor a replay answer.
  malformed_frames,
  count_
};
inline constexpr std::size_t drop_reasons = static_cast<std::size_t>(drop_reason::count_);
std::string_view name(drop_reason reason);

/// Shapes of what an engine published: which wire dialect it speaks, and when that changes. Names are metrics
/// labels.
enum class wire_form : std::uint8_t { batch_array, batch_map, event_array, event_map, count_ };
inline constexpr std::size_t wire_forms = static_cast<std::size_t>(wire_form::count_);
std::string_view name(wire_form form);

/// A count for each value of an enum that ends in `count_`.
template <class Enum>
class counts_by {
 public:
  std::uint64_t& operator[](Enum which) { return counts_[static_cast<std::size_t>(which)]; }
  std::uint64_t operator[](Enum which) const { return counts_[static_cast<std::size_t>(which)]; }
  counts_by& operator+=(const counts_by& more) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += more.counts_[i];
    return *this;
  }

 private:
  std::array<std::uint64_t, static_cast<std::size_t>(Enum::count_)> counts_{};
};
using drop_counts = counts_by<drop_reason>;
using form_counts = counts_by<wire_form>;

/// Names one life of an engine's publisher.
using publisher_id = std::array<std::uint8_t, 16>;

/// One batch as an engine published it.
struct kv_event_batch {
  /// Seconds since 1970 by the engine's clock; 0 if it did not say.
  double published_at = 0;
  std::optional<std::int64_t> data_parallel_rank;
  /// From engines that name it; another one than before is a restart.
  std::optional<publisher_id> publisher;
  std::vector<kv_event> events;
  /// Events left out, and what was wrong with the first bad one, for the log.
  drop_counts dropped;
  std::string first_problem;
  /// Of this batch and each of its events, those left out included.
  form_counts forms;
};

}  // namespace infernex::engine
