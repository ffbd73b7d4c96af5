#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "actors/engine/block_key.hpp"
#include "actors/engine/hash_index.hpp"
#include "actors/engine/kv_event.hpp"
#include "actors/engine/slab.hpp"
#include "messages/registry.hpp"

namespace infernex::engine {

/// How a set of block keys changed: emptied first if `cleared`, then, tier by tier (the device first), removed, then
/// added. No key is in both lists of a tier; after a clear nothing is removed. On each tier removed keys come with no
/// block before one that follows it, added keys with no block before the one it follows.
struct key_difference {
  struct change {
    fb::KvTier tier = fb::KvTier::Device;
    std::vector<block_key> removed;
    std::vector<block_key> added;
  };
  bool cleared = false;
  /// Of the tiers where something changed.
  std::vector<change> changes;
  /// chain_set::closed() after the change.
  bool closed = true;
  bool empty() const { return !cleared && changes.empty(); }
};

/// The keys held on one tier, no block before the one it follows.
struct tier_keys {
  fb::KvTier tier = fb::KvTier::Device;
  std::vector<block_key> keys;
};

/// Which block keys are held on which tier, by how many holders, and which block each of them follows. 32 bytes an
/// entry besides the index. Entries are named by handles; a handle stays good while somebody holds or pins it, or
/// until settle() is called on it or on an entry that follows it.
class chain_set {
 public:
  using node = hash_index::id;
  static constexpr node none = hash_index::none;

  /// The entry of this key, made if there is none, which follows `parent` (none: it is the first of its prompt).
  /// A new entry is held nowhere: hold or pin it, or settle it.
  node attach(block_key key, node parent);
  /// Holders of a tier are counted.
  void hold(node at, fb::KvTier tier);
  void release(node at, fb::KvTier tier);
  /// Keeps an entry, and its link to the one it follows, without holding its key anywhere.
  void pin(node at);
  void unpin(node at);
  /// Forgets an entry that nobody holds or pins any more. To be called after the last release.
  void settle(node at);

  block_key key_of(node at) const { return entries_[at].key; }
  void prefetch(block_key key) const { by_key_.prefetch(key); }

  /// Pairs of key and tier held, and the XOR of their digests (messages/kv_digest.hpp).
  std::uint64_t keys() const { return keys_; }
  std::uint64_t digest() const { return digest_; }
  /// Every block on the device has the one it follows there too.
  bool closed() const { return holes_ == 0; }

  /// What changed since the last call, or since the construction.
  key_difference take_difference();
  std::vector<tier_keys> all_keys() const;

  /// Entries, including those nobody holds that a difference has yet to tell of.
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const;

 private:
  // Pins are counted like holders of one tier more.
  static constexpr std::size_t pins = kv_tiers;
  struct entry {
    block_key key = 0;
    node parent = none;
    // Entries whose parent this is, and how many of them are on the device.
    std::uint32_t links = 0;
    std::uint32_t followers = 0;
    // Place in its chain, for sorting; longer chains than this can count do not exist.
    std::uint32_t depth : 23 = 0;
    // A bit a tier: held as of the last difference; listed in added_, in removed_.
    std::uint32_t published : 3 = 0;
    std::uint32_t to_add : 3 = 0;
    std::uint32_t to_remove : 3 = 0;
    std::array<std::uint16_t, kv_tiers + 1> holders{};
  };
  static_assert(sizeof(entry) == 32);

  static bool is_held(const entry& one);
  bool count_up(node at, std::size_t kind);
  bool count_down(node at, std::size_t kind);
  void enter_device(entry& one);
  void leave_device(entry& one);
  std::vector<block_key> take(std::vector<node>& listed, std::size_t tier, bool additions);
  std::vector<block_key> keys_of(const std::vector<node>& nodes, bool sorted, bool deepest_first) const;

  slab<entry> entries_;
  hash_index by_key_;
  // What the holders of an entry cannot count, by node and kind.
  std::unordered_map<std::uint64_t, std::uint32_t> more_holders_;
  std::uint64_t keys_ = 0;
  std::uint64_t digest_ = 0;
  std::uint64_t holes_ = 0;
  // An event since the last difference left a hole: they may not have come in the order of the chains.
  bool had_holes_ = false;
  // In the order of the first event. An entry is listed at most once, and kept until the list is taken.
  std::array<std::vector<node>, kv_tiers> added_;
  std::array<std::vector<node>, kv_tiers> removed_;
};

}  // namespace infernex::engine
