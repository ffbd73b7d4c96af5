#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/engine/kv_event.hpp"

namespace infernex::engine {

/// Stored blocks whose predecessor is not known yet (its event was lost, or comes later), so that their
/// keys cannot be computed. Bounded; events are parked and taken out as a whole.
class parked_blocks {
 public:
  struct entry {
    stored_blocks blocks;
    /// Which of the blocks have been removed while they waited: they still link the chain.
    std::vector<bool> gone;
  };

  parked_blocks(std::size_t max_blocks, std::size_t max_bytes) : max_blocks_(max_blocks), max_bytes_(max_bytes) {}

  /// False: full. Precondition: blocks.parent is set.
  bool park(stored_blocks blocks);
  /// One block that waits, alone, as it was stored.
  std::optional<stored_blocks> find(std::uint64_t hash) const;
  /// Marks one waiting copy of a block as removed. False: none waits here.
  bool remove(std::uint64_t hash, fb::KvTier tier);
  /// Takes out everything that waits for this block.
  std::vector<entry> take_children(std::uint64_t parent);
  void clear();
  /// Blocks that wait, removed ones included.
  std::size_t size() const { return size_; }
  /// Memory that they take, about.
  std::size_t bytes() const { return bytes_; }

 private:
  using id = std::uint64_t;
  entry take(id which);

  std::size_t max_blocks_;
  std::size_t max_bytes_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  id next_ = 0;
  std::unordered_map<id, entry> entries_;
  std::unordered_multimap<std::uint64_t, id> by_parent_;
  std::unordered_multimap<std::uint64_t, id> by_hash_;
};

}  // namespace infernex::engine
