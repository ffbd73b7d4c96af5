#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "actors/engine/hash_index.hpp"
#include "actors/engine/kv_event.hpp"
#include "actors/engine/slab.hpp"

namespace infernex::engine {

/// An engine's blocks by its own hashes, with the copies it has of each, counted by tier and group. 16 bytes a block
/// besides the index. A block is held while any group has a copy. Of a model with several groups that hold every token,
/// only what all of them have can be reused; engines keep such groups nearly in step, but not exactly, so that for
/// these models a little more may be counted as held than the engine can use.
class engine_blocks {
 public:
  using id = hash_index::id;
  static constexpr id none = hash_index::none;

  id find(std::uint64_t hash) const;
  void prefetch(std::uint64_t hash) const { by_hash_.prefetch(spread(hash)); }
  /// A block without copies. `link` is the caller's: what the block means. Precondition: the hash is not there yet.
  id add(std::uint64_t hash, std::uint32_t link, std::optional<std::uint32_t> group);
  /// Precondition: it has no copies.
  void erase(id at);

  std::uint32_t link(id at) const { return blocks_[at].link; }
  void set_link(id at, std::uint32_t link) { blocks_[at].link = link; }

  bool is_held(id at, fb::KvTier tier) const { return is_held(blocks_[at], static_cast<std::size_t>(tier)); }
  bool is_held(id at) const;

  /// True: it is the tier's first. Without a group: of the group that stored the block first.
  bool add_copy(id at, fb::KvTier tier, std::optional<std::uint32_t> group);
  enum class removal : std::uint8_t { unknown, others_left, last_of_tier };
  /// Without a group: whichever there is.
  removal remove_copy(id at, fb::KvTier tier, std::optional<std::uint32_t> group);

  std::size_t size() const { return blocks_.size(); }
  std::size_t bytes() const;

 private:
  /// Models have a handful of groups; from this one on they are counted as one.
  static constexpr std::uint32_t last_group = 31;
  struct block {
    std::uint64_t hash = 0;
    std::uint32_t link = 0;
    // Of the home group; what is above their range, and of other groups, is in more_copies_.
    std::array<std::uint8_t, kv_tiers> copies{};
    std::uint8_t home : 5 = 0;
    // A bit a tier: more_copies_ has some.
    std::uint8_t more : 3 = 0;
  };
  static_assert(sizeof(block) == 16);

  /// Engines' hashes may be anything: 1, 2, 3.
  static std::uint64_t spread(std::uint64_t hash) {
    hash ^= hash >> 32;
    return hash * 0x9E3779B97F4A7C15ULL;
  }
  static bool is_held(const block& one, std::size_t tier) {
    return one.copies[tier] > 0 || (one.more >> tier & 1U) != 0;
  }
  static std::uint64_t row(id at, std::size_t tier, std::uint32_t group);
  bool take_from_more(id at, std::size_t tier, std::uint32_t group);

  slab<block> blocks_;
  hash_index by_hash_;
  std::unordered_map<std::uint64_t, std::uint32_t> more_copies_;
};

}  // namespace infernex::engine
