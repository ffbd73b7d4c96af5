#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/indexer/byte_budget.hpp"
#include "actors/indexer/holders.hpp"
#include "actors/indexer/huge_array.hpp"

namespace infernex::indexer {

/// A fixed-size open-addressing table from key to holders: one writer, readers without a lock. A cell never
/// changes its key, so a reader that has found its key can only see that key's holders; cells of keys that
/// nobody holds disappear when the owner replaces the table (copy_live).
class cell_table {
 public:
  using key = std::uint64_t;
  struct cell {
    std::atomic<key> name{0};  // 0: free. Key 0 itself has a cell apart.
    std::atomic<holders::word> held_by{0};
  };

  /// `capacity`: a power of two. `width`: words of a bitset. `lease` covers footprint(capacity).
  cell_table(std::uint32_t capacity, std::uint32_t width, byte_budget& budget, byte_lease lease);
  static constexpr std::uint32_t line_cells = 64 / sizeof(cell);

  static std::uint64_t footprint(std::uint32_t capacity) {
    return sizeof(cell_table) + std::uint64_t{capacity} * sizeof(cell);
  }
  /// Capacity for `keys` keys with room to grow.
  static std::uint32_t capacity_for(std::uint64_t keys);

  /// Spreads a key; the top bits choose the part, those below the cell.
  static std::uint64_t mix(key k) { return k * 0x9E3779B97F4A7C15ULL; }
  static constexpr unsigned part_bits = 4;

  // --- any thread ---
  std::uint32_t width() const { return width_; }
  holders::word find(key k) const {
    const auto* c = find_cell(k);
    return c ? c->held_by.load(std::memory_order_acquire) : 0;
  }
  void prefetch(key k) const { __builtin_prefetch(&cells_[home(k)]); }
  void prefetch_to_write(key k) const { __builtin_prefetch(&cells_[home(k)], 1); }

  /// Calls `use(key)` for each key that one of the slots chosen by `wanted(slot)` holds.
  template <class Wanted, class Use>
  void each_key_of(Wanted wanted, Use use) const {
    const auto visit = [&](key k, const cell& c) {
      const auto held = c.held_by.load(std::memory_order_acquire);
      bool found = false;
      if (holders::is_bitset(held)) {
        holders::each_bit(holders::bitset_of(held), width_, [&](slot s) { found = found || wanted(s); });
      } else {
        for (unsigned i = 0; i < holders::inline_count(held); ++i) found = found || wanted(holders::inline_at(held, i));
      }
      if (found) use(k);
    };
    visit(0, zero_);
    for (std::uint32_t i = 0; i <= mask_; ++i)
      if (const auto k = cells_[i].name.load(std::memory_order_acquire); k != 0) visit(k, cells_[i]);
  }

  // --- writer ---
  enum class outcome : std::uint8_t { done, nothing_to_do, table_full, too_narrow, no_memory };
  /// `keep_free`: what a new bitset must leave of the budget.
  outcome add(key k, slot s, std::uint64_t keep_free);
  outcome remove(key k, slot s);
  /// A bitset of slot_limit bits.
  using slot_set = std::vector<std::uint64_t>;
  /// Adds what this table holds, less the slots in `dropped`, to an empty table that is large and wide
  /// enough. False: no memory for a bitset; then `to` is incomplete.
  bool copy_live(cell_table& to, const slot_set& dropped) const;
  /// Keys that would be copied.
  std::uint32_t live_without(const slot_set& dropped) const;

  std::uint32_t capacity() const { return mask_ + 1; }
  /// Keys with holders.
  std::uint32_t live() const { return live_; }
  /// Of a full table: a copy of the same size would have room for a 32nd of it at least.
  bool is_worth_sweeping() const { return live_ <= std::uint64_t{capacity()} * 23 / 32; }
  /// With its bitsets.
  std::uint64_t bytes() const { return lease_.bytes() + bitset_bytes_; }

 private:
  /// The first cell of a cache line: a line is searched whole before the next one is fetched.
  std::uint32_t home(key k) const {
    return static_cast<std::uint32_t>((mix(k) << part_bits) >> shift_) & mask_ & ~(line_cells - 1);
  }
  /// The key's cell, or the free one it would get: the search passes a free cell only if the key is not there.
  const cell& find_or_free(key k) const {
    if (k == 0) return zero_;
    for (auto i = home(k);; i = (i + 1) & mask_) {
      const auto at = cells_[i].name.load(std::memory_order_acquire);
      if (at == k || at == 0) return cells_[i];
    }
  }
  const cell* find_cell(key k) const {
    const auto& c = find_or_free(k);
    return k == 0 || c.name.load(std::memory_order_relaxed) == k ? &c : nullptr;
  }
  void claim(cell& free, key k, holders::word first);
  holders::bits* new_bitset(std::uint64_t keep_free);
  bool empty(holders::word w) const;
  template <class Use>
  void each_kept(const slot_set& dropped, Use use) const;

  huge_array<cell> cells_;
  std::uint32_t mask_;
  unsigned shift_;
  std::uint32_t width_;
  std::uint32_t claimed_ = 0;
  std::uint32_t live_ = 0;
  cell zero_;
  byte_budget& budget_;
  byte_lease lease_;
  struct bitset_chunk {
    std::unique_ptr<holders::bits[]> words;
    byte_lease lease;
  };
  std::vector<bitset_chunk> chunks_;
  std::uint64_t bitset_bytes_ = 0;
  std::uint32_t chunk_words_ = 0;
  std::uint32_t chunk_used_ = 0;
};

}  // namespace infernex::indexer
