#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/simulator/kv_event.hpp"

namespace infernex::simulator {

using block_id = std::uint32_t;

/// The engine's KV memory: blocks with reference counts. A full block is named by a hash chained over the
/// sequence from its start, and stays reusable after its last reference until its memory is needed: least
/// recently released first, the end of a sequence before its start.
class prefix_cache {
 public:
  /// `seed` makes the hashes of this process; draw it at random.
  prefix_cache(std::uint32_t block_size, std::uint32_t capacity, std::uint64_t seed);

  /// The longest cached prefix of `tokens`, at most floor((n - 1) / block_size) blocks: the last token is
  /// always computed, since its output is what is asked for.
  std::vector<block_id> match(std::span<const token_id> tokens, std::string_view salt) const;

  /// Whether `count` new blocks can be had besides holding `reused`.
  bool can_allocate(std::size_t count, std::span<const block_id> reused = {}) const;
  /// One reference more for each.
  void hold(std::span<const block_id> blocks);
  /// Appends `count` blocks of one reference each. Precondition: can_allocate(count).
  void allocate(std::size_t count, std::vector<block_id>& blocks);
  /// Blocks first..last-1 of the sequence are full: name them. Those before are named already.
  void seal(std::span<const block_id> sequence, std::size_t first, std::size_t last, std::span<const token_id> tokens,
            std::string_view salt);
  /// One reference less for each block of a sequence.
  void release(std::span<const block_id> sequence);
  /// Forgets every name. Precondition: no block is held.
  void clear();

  std::uint32_t block_size() const { return block_size_; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(blocks_.size()); }
  /// Held by sequences.
  std::uint32_t used() const { return capacity() - free_; }
  /// Named, held or not.
  std::size_t cached() const { return by_hash_.size(); }

  /// What happened since the last call, in order.
  std::vector<kv_event> take_events();

 private:
  struct block {
    std::uint32_t references = 0;
    bool named = false;
    engine_hash hash = 0;
    // Neighbours in the list of free blocks, next to be used first; capacity() is both its ends.
    block_id before = 0;
    block_id after = 0;
  };

  engine_hash root(std::string_view salt) const;
  engine_hash next(engine_hash parent, std::span<const token_id> tokens) const;
  void unlink(block_id id);
  void link_last(block_id id);
  void forget(block_id id);

  std::uint32_t block_size_;
  std::uint64_t seed_;
  std::uint32_t free_;
  std::vector<block> blocks_;
  block_id first_free_;
  block_id last_free_;
  std::unordered_multimap<engine_hash, block_id> by_hash_;
  std::vector<kv_event> events_;
};

}  // namespace infernex::simulator
