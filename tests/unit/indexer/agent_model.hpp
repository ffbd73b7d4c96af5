#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "actors/indexer/source.hpp"

namespace infernex::indexer {

/// A delta with the memory its spans point to.
struct owned_delta {
  delta head;
  std::vector<block_key> removed;
  std::vector<block_key> added;
  delta get() const {
    auto d = head;
    d.removed = removed;
    d.added = added;
    return d;
  }
};

struct owned_chunk {
  snapshot_chunk head;
  std::vector<block_key> keys;
  snapshot_chunk get() const {
    auto c = head;
    c.keys = keys;
    return c;
  }
};

/// An agent as the messages describe it: a mirror, numbered changes of it, announcements, snapshots.
struct agent_model {
  std::uint64_t epoch = 1'000;
  std::uint64_t sequence = 0;
  std::uint64_t announced = 0;
  std::optional<std::uint64_t> engine_epoch;
  bool down = false;
  std::set<block_key> mirror;

  std::uint64_t digest() const {
    std::uint64_t x = 0;
    for (const auto k : mirror) x ^= k;
    return x;
  }
  owned_delta change(const std::vector<block_key>& removed, const std::vector<block_key>& added, bool cleared = false) {
    if (cleared) mirror.clear();
    for (const auto k : removed) mirror.erase(k);
    mirror.insert(added.begin(), added.end());
    return {{epoch, ++sequence, engine_epoch, cleared, {}, {}, mirror.size(), digest()}, removed, added};
  }
  /// The engine was replaced by a new process with an empty cache.
  owned_delta new_engine(std::uint64_t its_epoch) {
    engine_epoch = its_epoch;
    down = false;
    return change({}, {}, true);
  }
  announcement announce() { return {epoch, ++announced, down, engine_epoch, sequence, mirror.size(), digest()}; }
  std::vector<owned_chunk> snapshot(std::size_t keys_a_chunk) const {
    const std::vector<block_key> all(mirror.begin(), mirror.end());
    const auto total = static_cast<std::uint32_t>(all.empty() ? 1 : (all.size() + keys_a_chunk - 1) / keys_a_chunk);
    std::vector<owned_chunk> chunks;
    for (std::uint32_t i = 0; i < total; ++i) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i * keys_a_chunk));
      const auto to = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), (i + 1) * keys_a_chunk));
      chunks.push_back({{epoch, engine_epoch, sequence, i, total, {}}, {from, to}});
    }
    return chunks;
  }
  /// The agent's process is started again: a larger epoch, nothing known of its engine yet.
  void restart() {
    epoch += 10;
    sequence = 0;
    announced = 0;
    mirror.clear();
    engine_epoch.reset();
    down = false;
  }
};

}  // namespace infernex::indexer
