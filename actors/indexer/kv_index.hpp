#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/byte_budget.hpp"
#include "messages/generated/origin_generated.h"

namespace infernex::indexer {

using block_key = std::uint64_t;
using tier = messages::KvTier;

/// Leading blocks of a chain that an instance caches: on any tier, and of those on the device alone, and on device or
/// host. device_blocks <= host_blocks <= blocks.
struct match {
  std::string_view instance;  // valid as long as the reader's next call
  std::uint32_t blocks = 0;
  std::uint32_t device_blocks = blocks;
  std::uint32_t host_blocks = blocks;
};

/// Which engine of one model caches which blocks. One writer thread, any number of readers that take no lock. A reader
/// sees every block of an instance whose add has returned before the lookup began and whose removal has not begun;
/// never one of an instance cleared before the lookup began.
///
/// Keys lie in 16 parts, each a table of its own that is replaced by a new one when it is full, so that growth copies
/// a 16th. An instance owns a slot a tier (a number that stands for it in the tables); clearing it gives it other slots
/// and leaves the old ones' traces to be swept, one part at each later write or maintain().
/// Design and figures: actors/indexer/README.md.
class kv_index {
 public:
  struct limits {
    /// At most 3840; fewer fit where instances use several tiers.
    std::uint32_t max_instances = 1024;
    /// Bytes of everything the index allocates, tables that are being replaced included. What is given up first: new
    /// blocks. At the limit they are refused and counted, what is in stays true, and evictions make room again.
    std::uint64_t max_bytes = 1ULL << 30;
  };
  /// `shared`: a further byte limit, for several indexes together; may be null.
  explicit kv_index(limits bounds, std::shared_ptr<byte_budget> shared = nullptr);
  kv_index() : kv_index(limits{}) {}
  ~kv_index();

  // --- writer ---
  /// False: a limit is reached. Adding a known instance does nothing.
  bool add_instance(std::string_view instance);
  /// Forgets the instance and its blocks.
  void remove_instance(std::string_view instance);
  /// Forgets its blocks. Readers see none of them once this has returned.
  void clear(std::string_view instance);
  /// Number of keys refused for the byte limit. Keys already held are fine. Precondition: instance added.
  std::size_t add(std::string_view instance, std::span<const block_key> keys, tier on = tier::Device);
  void remove(std::string_view instance, std::span<const block_key> keys, tier on = tier::Device);
  /// Whether the instance's blocks on the device are, and stay through the writes that follow, without holes: no block
  /// without the one before it. An empty instance is, until told otherwise. Lookups gallop over such instances and walk
  /// block by block over the others, so a false promise shows as a match that is too long.
  void set_closed(std::string_view instance, bool closed);
  /// Sweeps one part, if cleared instances have left anything to sweep. True: call again. Every write does
  /// one such step too; the owner's tick does the rest.
  bool maintain();

  std::size_t instances() const;
  /// Blocks held for an instance, all tiers, and their digest (messages/kv_digest.hpp): equal to the agent's figures
  /// when exact.
  std::uint64_t keys_of(std::string_view instance) const;
  std::uint64_t digest_of(std::string_view instance) const;
  std::uint64_t keys_of(std::string_view instance, tier on) const;
  /// Keys that somebody holds. Those of cleared instances count until they are swept.
  std::uint64_t distinct_keys() const;
  /// Of this index alone, tables that a reader may still see included.
  std::uint64_t bytes() const;
  std::uint64_t max_bytes() const;
  std::uint64_t refused() const;
  /// A tenth less is held here, or used by all indexes that share the limit, than when a key was last refused: worth
  /// offering again what was.
  bool has_room() const;

  // --- readers ---
  static constexpr std::uint32_t key_parts = 16;
  /// One per reading thread; cheap to keep, registered with the index, which must outlive it.
  class reader {
   public:
    explicit reader(const kv_index& index);
    reader(const reader&) = delete;
    ~reader();
    /// For every instance that holds the first block: how many leading blocks it holds without a hole. Gallops where
    /// it may. The result is valid until the next call.
    std::span<const match> lookup(std::span<const block_key> chain);
    /// The same, block by block: what lookup() must equal.
    std::span<const match> walk(std::span<const block_key> chain);
    /// Calls `use` for each key that the instance holds, on whatever tier, in one of the parts, 0 to key_parts - 1.
    /// Keys that come or go meanwhile may be among them or not.
    void each_key(std::string_view instance, std::uint32_t part, const std::function<void(block_key)>& use);

   private:
    struct impl;
    std::unique_ptr<impl> impl_;
  };

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex::indexer
