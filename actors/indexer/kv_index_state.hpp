#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/indexer/cell_table.hpp"
#include "actors/indexer/kv_index.hpp"
#include "actors/indexer/reclaim.hpp"

namespace infernex::indexer {

inline constexpr std::size_t tiers = 3;
using slot_bits = std::vector<std::uint64_t>;
inline bool has(const slot_bits& set, slot s) { return s / 64 < set.size() && ((set[s / 64] >> (s % 64)) & 1) != 0; }

/// What a reader must see of one moment: which slots count, and whose they are. Immutable.
struct directory {
  using name_list = std::vector<std::string>;  // by device slot, empty where unused
  std::shared_ptr<const name_list> names;
  /// Device slots in use, and those of them whose instance has slots of other tiers.
  slot_bits device;
  slot_bits tiered;
  /// Slots of other tiers in use, and, by slot, whose they are; both empty if nobody has any.
  struct place {
    slot device = 0;
    tier on = tier::Device;
  };
  slot_bits lower;
  std::vector<place> places;

  byte_lease lease;
};

struct kv_index::impl {
  static constexpr std::size_t parts = std::size_t{1} << cell_table::part_bits;
  static std::size_t part_of(block_key k) { return cell_table::mix(k) >> (64 - cell_table::part_bits); }

  impl(limits wanted, std::shared_ptr<byte_budget> shared);

  struct instance {
    slot device;
    std::optional<slot> lower[tiers - 1];  // host, disk: from their first block on
    std::array<std::uint64_t, tiers> keys{};
    std::uint64_t digest = 0;
    byte_lease lease;

    std::optional<slot> at(tier on) const {
      return on == tier::Device ? std::optional(device) : lower[static_cast<std::size_t>(on) - 1];
    }
    std::uint64_t all_keys() const { return keys[0] + keys[1] + keys[2]; }
  };

  limits bounds;
  byte_budget budget;
  mutable reclaimer reclaim;
  std::array<std::atomic<cell_table*>, parts> tables{};
  std::atomic<const directory*> current{nullptr};
  /// Device slots whose blocks may have holes. Apart from the directory, for it can change with every write.
  std::array<std::atomic<std::uint64_t>, slot_limit / 64> open{};
  /// How often a slot has become open: a lookup that galloped meanwhile begins again, walking.
  std::atomic<std::uint64_t> openings{0};
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
  struct {
    std::uint64_t bytes = 0;  // of all indexes that share the limit
    std::uint64_t keys = 0;
    bool for_slots = false;
  } last_refusal;
  /// Bytes of the largest part: what replacing a part may need, kept free so that sweeping always fits.
  std::uint64_t largest_part = 0;

  instance* find(std::string_view name) {
    const auto it = instances.find(name);
    return it == instances.end() ? nullptr : &it->second;
  }
  /// Nothing: every slot is taken or still to be swept.
  std::optional<slot> take_slot();
  void abandon(instance& of);
  void scrub(slot s);
  void set_open(slot s, bool is_open);
  void publish_directory();
  std::uint64_t keep_free() const { return largest_part + 4 * (owned_directory ? owned_directory->lease.bytes() : 0); }
  bool add_key(std::size_t part, block_key k, slot s, bool& added);
  cell_table::slot_set dead_slots() const;
  bool replace_table(std::size_t part, std::uint32_t capacity, std::uint64_t leave_free);
  bool sweep_step();
  void finish_sweep();
};

}  // namespace infernex::indexer
