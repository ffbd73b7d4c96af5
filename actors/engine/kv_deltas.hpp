#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "actors/engine/chain_set.hpp"

namespace infernex::engine {

/// The set as the deltas so far have told it.
struct published_set {
  std::uint64_t keys = 0;
  std::uint64_t digest = 0;
  bool closed = true;
};

/// A change as deltas of at most `most_keys` keys each, the figures of each exact in itself; all but what says who
/// sends them, and when. A set that was closed and is closed in the end is so after each delta, too.
std::vector<fb::KvDeltaT> deltas_of(const key_difference& change, published_set& published, std::size_t most_keys);

/// A whole set as snapshot chunks of at most `most_keys` keys each, at least one; index and total are set.
std::vector<fb::KvSnapshotChunkT> chunks_of(const std::vector<tier_keys>& tiers, bool closed, std::size_t most_keys);

}  // namespace infernex::engine
