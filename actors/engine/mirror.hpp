#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/engine/block_key.hpp"
#include "actors/engine/chain_set.hpp"
#include "actors/engine/engine_blocks.hpp"
#include "actors/engine/kv_event.hpp"
#include "actors/engine/parked_blocks.hpp"
#include "actors/engine/regrouped_blocks.hpp"

namespace infernex::engine {

struct mirror_settings {
  /// Part of the root of every chain of keys.
  std::string model;
  /// Tokens a block of our keys; unset: as many as the engine's blocks have.
  std::optional<std::uint32_t> canonical_block_size;
  /// Blocks held, and blocks parked for want of a parent.
  std::size_t max_blocks = 4'000'000;
  std::size_t max_parked_blocks = 65'536;
  std::size_t max_parked_bytes = 64 << 20;
};

/// The set of our block keys that one engine caches, tier by tier, kept from the engine's own events. The engine's
/// block hashes and the size of its blocks stay inside: blocks are mapped to keys computed from the events' tokens, at
/// the canonical block size (regrouped_blocks, if the engine's own differs). A block stored several times on a tier is
/// held there until each copy is gone. A plain value with one owner; no thread.
class mirror {
 public:
  explicit mirror(mirror_settings settings);
  mirror(const mirror&) = delete;
  mirror& operator=(const mirror&) = delete;

  void apply(const kv_event& event);
  /// Forgets everything, as when the engine restarted.
  void clear();

  /// See chain_set.
  std::uint64_t keys() const { return keys_.keys(); }
  std::uint64_t digest() const { return keys_.digest(); }
  bool closed() const { return keys_.closed(); }
  std::vector<tier_keys> all_keys() const { return keys_.all_keys(); }
  /// What changed since the last call (or the construction).
  key_difference take_difference();

  /// Tokens a block of our keys, and of the engine's own blocks (by its events), once known.
  std::optional<std::uint32_t> block_size() const;
  std::optional<std::uint32_t> engine_block_size() const { return engine_block_size_; }
  /// A size of the engine's blocks that was seen and is not the one it began with.
  std::optional<std::uint32_t> other_block_size() const { return other_block_size_; }
  /// Whether every block the engine told of is in the set: nothing was left out, or waits for its parent,
  /// since the last clear.
  bool complete() const { return !left_out_ && parked_.size() == 0; }
  std::size_t parked() const { return parked_.size(); }
  const drop_counts& dropped() const { return dropped_; }
  /// Memory allocated, about.
  std::size_t bytes() const;

 private:
  using id = engine_blocks::id;
  static constexpr id none = engine_blocks::none;
  /// Blocks of an event whose memory is asked for together.
  static constexpr std::size_t at_once = 32;
  /// What one event leads to besides its own blocks.
  struct follow_up {
    /// Parked blocks whose parent has come, and that parent.
    std::vector<std::pair<parked_blocks::entry, id>> waiting;
    /// Hashes of blocks that only link a chain: they were removed while they were parked.
    std::vector<std::uint64_t> links;
  };

  void store(const stored_blocks& blocks);
  void remove(const removed_blocks& blocks);
  bool is_usable(const stored_blocks& blocks);
  bool is_full() const;
  void leave_out(drop_reason reason, std::size_t count = 1);
  void park(stored_blocks blocks);
  void park(stored_blocks block, const stored_blocks& copy);
  void add_copies(const stored_blocks& blocks);
  block_key root_of(const stored_blocks& blocks);
  void place(const stored_blocks& blocks, id parent);
  void place_chain(const stored_blocks& blocks, const std::vector<bool>* gone, id parent, follow_up& more);
  block_key prepare(const stored_blocks& blocks, std::size_t first, block_key before);
  void prepare(std::span<const std::uint64_t> hashes);
  id add(const stored_blocks& blocks, std::size_t i, id parent, block_key root);
  void add_copy(id block, const stored_blocks& from);
  void forget(id block);

  mirror_settings settings_;
  std::optional<std::uint32_t> engine_block_size_;
  std::optional<std::uint32_t> other_block_size_;
  engine_blocks blocks_;  // linked to keys_, or to regrouped_
  chain_set keys_;
  std::optional<regrouped_blocks> regrouped_;
  parked_blocks parked_;
  std::optional<block_key> plain_root_;
  std::array<block_key, at_once> prepared_{};
  std::set<std::uint32_t> sparse_groups_;
  drop_counts dropped_;
  bool left_out_ = false;
  bool cleared_ = false;
};

}  // namespace infernex::engine
