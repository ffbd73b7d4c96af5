#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/engine/hash_index.hpp"

namespace infernex::simulator {

using block_id = std::uint32_t;
/// Stands for a full block and all that precede it in its sequence. Opaque here: whoever owns the tokens, or the
/// trace, makes the names.
using block_name = std::uint64_t;
using sequence_id = std::uint64_t;

/// What became of one block.
struct cache_change {
  enum class kind : std::uint8_t { stored, removed, cleared };
  kind what = kind::stored;
  /// Stored: no other block has this name yet. Removed: no other block has it any more. What remains of the changes
  /// when a cache is seen as a set of names.
  bool sole = false;
  /// Stored: the block's place in its sequence.
  std::uint32_t index = 0;
  block_name name = 0;
  /// Stored: whose.
  sequence_id sequence = 0;
};

/// The engine's KV memory: blocks with reference counts. A full block has a name and stays reusable after its last
/// reference until its memory is needed: least recently released first, the end of a sequence before its start.
class prefix_cache {
 public:
  prefix_cache(std::uint32_t block_size, std::uint32_t capacity);

  /// The longest cached prefix of the chain, appended to `found`.
  void match(std::span<const block_name> chain, std::vector<block_id>& found) const;
  /// Its length alone.
  std::uint32_t matched(std::span<const block_name> chain) const;

  /// Whether `count` new blocks can be had besides holding `reused`.
  bool can_allocate(std::size_t count, std::span<const block_id> reused = {}) const;
  /// One reference more for each.
  void hold(std::span<const block_id> blocks);
  /// Appends `count` blocks of one reference each. Precondition: can_allocate(count).
  void allocate(std::size_t count, std::vector<block_id>& blocks);
  /// Blocks first..last-1 of the sequence are full: they get the chain's names. Those before have them already.
  void seal(sequence_id of, std::span<const block_id> blocks, std::size_t first, std::size_t last,
            std::span<const block_name> chain);
  /// One reference less for each block of a sequence.
  void release(std::span<const block_id> sequence);
  /// Forgets every name, also of blocks that are held. Precondition: nobody will name what follows a held block.
  void clear();

  std::uint32_t block_size() const { return block_size_; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(blocks_.size()); }
  /// Held by sequences.
  std::uint32_t used() const { return capacity() - free_; }
  /// Named, held or not.
  std::size_t cached() const { return by_name_.size(); }

  /// What happened since they were last forgotten, in order.
  std::span<const cache_change> changes() const { return changes_; }
  void forget_changes() { changes_.clear(); }

 private:
  struct block {
    block_name name = 0;
    std::uint32_t references = 0;
    // Neighbours in the list of free blocks, next to be used first; capacity() is both its ends.
    block_id before = 0;
    block_id after = 0;
    bool named = false;
  };

  block_id find(block_name name) const;
  void unlink(block_id id);
  void link_last(block_id id);

  std::uint32_t block_size_;
  std::uint32_t free_;
  std::vector<block> blocks_;
  block_id first_free_;
  block_id last_free_;
  /// Of blocks with equal names, any.
  engine::hash_index by_name_;
  std::vector<cache_change> changes_;
};

}  // namespace infernex::simulator
