#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/indexer/cell_table.hpp"
#include "actors/indexer/kv_index.hpp"
#include "actors/indexer/reclaim.hpp"

namespace infernex::indexer {

/// What a reader must see of one moment: which slots count, and whose they are. Immutable.
struct directory {
  using name_list = std::vector<std::string>;  // by slot, empty where unused
  std::shared_ptr<const name_list> names;
  std::vector<std::uint64_t> alive;  // bitset of slots

  directory(std::shared_ptr<const name_list> by_slot, std::vector<std::uint64_t> slots)
      : names(std::move(by_slot)), alive(std::move(slots)) {}
};

struct kv_index::impl {
  static constexpr std::size_t parts = std::size_t{1} << cell_table::part_bits;
  static std::size_t part_of(block_key k) { return cell_table::mix(k) >> (64 - cell_table::part_bits); }

  impl(limits wanted, std::shared_ptr<byte_budget> shared);

  struct instance {
    slot at;
    std::uint64_t keys = 0;
    std::uint64_t digest = 0;
  };

  limits bounds;
  byte_budget budget;
  mutable reclaimer reclaim;
  std::array<std::atomic<cell_table*>, parts> tables{};
  std::atomic<const directory*> current{nullptr};
  // What the pointers above point to.
  std::array<std::shared_ptr<cell_table>, parts> owned_tables;
  std::shared_ptr<const directory> owned_directory;

  std::map<std::string, instance, std::less<>> instances;
  std::vector<slot> free_slots;
  slot slots_used = 0;  // slots below it have been handed out at least once
  /// The ways of a slot after its instance has left it: waiting for a sweep, being swept, swept but
  /// possibly still under a reader's eyes.
  std::vector<slot> to_sweep;
  std::vector<slot> sweeping;
  std::vector<slot> swept;
  std::uint64_t swept_epoch = 0;
  std::size_t sweep_part = 0;
  std::uint64_t refused = 0;
  byte_lease directory_lease;

  instance* find(std::string_view name) {
    const auto it = instances.find(name);
    return it == instances.end() ? nullptr : &it->second;
  }
  slot take_slot();
  void abandon(instance& of);
  void publish_directory();
  bool add_key(std::size_t part, block_key k, slot s, bool& added);
  cell_table::slot_set dead_slots() const;
  bool replace_table(std::size_t part, std::uint32_t capacity, bool beyond_budget);
  bool sweep_step();
  void finish_sweep();
};

}  // namespace infernex::indexer
