#include "actors/engine/kv_deltas.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "messages/kv_digest.hpp"

namespace infernex::engine {

namespace {

/// Up to `room` elements off the front.
std::vector<block_key> take_front(std::span<const block_key>& from, std::size_t room) {
  const auto count = std::min(room, from.size());
  std::vector<block_key> front(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
  from = from.subspan(count);
  return front;
}

/// Puts the figures of the set after it into the delta.
void account(fb::KvDeltaT& delta, published_set& published) {
  if (delta.cleared) published = {};
  for (const auto key : delta.removed) published.digest ^= digest_of(key, delta.tier);
  for (const auto key : delta.added) published.digest ^= digest_of(key, delta.tier);
  published.keys += delta.added.size();
  published.keys -= delta.removed.size();
  delta.kv_keys = published.keys;
  delta.kv_digest = published.digest;
}

}  // namespace

std::vector<fb::KvDeltaT> deltas_of(const key_difference& change, published_set& published, std::size_t most_keys) {
  std::vector<fb::KvDeltaT> deltas;
  if (change.empty()) return deltas;
  bool cleared = change.cleared;
  const bool closed_on_the_way = (cleared || published.closed) && change.closed;
  const auto append = [&](fb::KvDeltaT& delta) {
    delta.cleared = std::exchange(cleared, false);
    delta.closed = closed_on_the_way;
    account(delta, published);
    deltas.push_back(std::move(delta));
  };
  for (const auto& of_tier : change.changes) {
    std::span<const block_key> removed(of_tier.removed);
    std::span<const block_key> added(of_tier.added);
    while (!removed.empty() || !added.empty()) {
      fb::KvDeltaT delta;
      delta.tier = of_tier.tier;
      delta.removed = take_front(removed, most_keys);
      // An order within the message, and so across messages: all removals come first.
      if (removed.empty()) delta.added = take_front(added, most_keys - delta.removed.size());
      append(delta);
    }
    // The device comes first: what follows does not change whether it is closed.
    deltas.back().closed = change.closed;
  }
  if (deltas.empty()) {
    fb::KvDeltaT emptied;
    append(emptied);
  }
  published.closed = change.closed;
  return deltas;
}

std::vector<fb::KvSnapshotChunkT> chunks_of(const std::vector<tier_keys>& tiers, bool closed, std::size_t most_keys) {
  std::vector<fb::KvSnapshotChunkT> chunks;
  for (const auto& of_tier : tiers) {
    for (std::span<const block_key> left(of_tier.keys); !left.empty();) {
      auto& chunk = chunks.emplace_back();
      chunk.tier = of_tier.tier;
      chunk.keys = take_front(left, most_keys);
    }
  }
  if (chunks.empty()) chunks.emplace_back();
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    chunks[i].index = static_cast<std::uint32_t>(i);
    chunks[i].total = static_cast<std::uint32_t>(chunks.size());
    chunks[i].closed = closed;
  }
  return chunks;
}

}  // namespace infernex::engine
