#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/engine/block_key.hpp"
#include "actors/engine/kv_event.hpp"
#include "actors/engine/parked_blocks.hpp"

namespace infernex::engine {

struct mirror_settings {
  /// Part of the root of every chain of keys.
  std::string model;
  /// Tokens a block; unset: as the first event says. Blocks of any other size are left out and counted:
  /// mapping between block sizes is not supported.
  std::optional<std::uint32_t> block_size;
  /// Engine blocks held, and blocks parked for want of a parent.
  std::size_t max_blocks = 4'000'000;
  std::size_t max_parked_blocks = 65'536;
};

/// How a set of block keys changed: emptied first if `cleared`, then removed, then added. No key is in both
/// lists; after a clear nothing is removed.
struct key_difference {
  bool cleared = false;
  std::vector<block_key> removed;
  std::vector<block_key> added;
  bool empty() const { return !cleared && removed.empty() && added.empty(); }
};

/// The set of our block keys that one engine caches, kept from the engine's own events. The engine's block
/// hashes stay inside: they are mapped to keys computed from the events' tokens. A block stored several
/// times, or on several tiers, is held until each copy is gone. A plain value with one owner; no thread.
class mirror {
 public:
  explicit mirror(mirror_settings settings);

  void apply(const kv_event& event);
  /// Forgets everything, as when the engine restarted.
  void clear();

  /// Number of distinct keys, and the XOR of them all.
  std::uint64_t keys() const { return holders_.size(); }
  std::uint64_t digest() const { return digest_; }
  std::vector<block_key> all_keys() const;
  /// What changed since the last call (or the construction).
  key_difference take_difference();

  /// The block size in use, once known.
  std::optional<std::uint32_t> block_size() const { return block_size_; }
  /// A block size that was seen and is not the one in use.
  std::optional<std::uint32_t> other_block_size() const { return other_block_size_; }
  /// Whether every block the engine told of is in the set: nothing was left out, or waits for its parent,
  /// since the last clear.
  bool complete() const { return !left_out_ && parked_.size() == 0; }
  std::size_t parked() const { return parked_.size(); }
  const drop_counts& dropped() const { return dropped_; }

 private:
  struct held_block {
    block_key key = 0;
    std::array<std::uint32_t, block_tiers> copies{};
  };

  void store(const stored_blocks& blocks);
  void remove(const removed_blocks& blocks);
  bool is_usable(const stored_blocks& blocks);
  void leave_out(drop_reason reason);
  void add_copies(const stored_blocks& blocks);
  void place(parked_blocks::entry first, block_key parent);
  void hold(std::uint64_t hash, block_key key, block_tier tier);
  void release(block_key key);

  mirror_settings settings_;
  std::optional<std::uint32_t> block_size_;
  std::optional<std::uint32_t> other_block_size_;
  std::unordered_map<std::uint64_t, held_block> blocks_;  // by the engine's hash
  std::unordered_map<block_key, std::uint32_t> holders_;  // how many of blocks_ have this key
  parked_blocks parked_;
  std::set<std::uint32_t> sparse_groups_;
  std::uint64_t digest_ = 0;
  drop_counts dropped_;
  bool left_out_ = false;
  bool cleared_ = false;
  std::unordered_set<block_key> added_;
  std::unordered_set<block_key> removed_;
};

}  // namespace infernex::engine
