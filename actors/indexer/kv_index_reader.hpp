#pragma once

#include <memory>
#include <span>
#include <vector>

#include "actors/indexer/kv_index_state.hpp"

namespace infernex::indexer {

/// What a reading thread keeps between lookups, and the three ways of one: galloping, walking, walking with tiers.
struct kv_index::reader::impl {
  explicit impl(const kv_index::impl& read) : index(read), mark(read.reclaim.enrol()) {}
  ~impl() { index.reclaim.leave(mark); }

  std::span<const match> lookup(std::span<const block_key> keys, bool may_gallop);
  void each_key(std::string_view instance, std::uint32_t part, const std::function<void(block_key)>& use);

  const kv_index::impl& index;
  reclaimer::mark* mark;
  /// Keeps the names of the last result; copied only when instances have come or gone.
  std::shared_ptr<const directory::name_list> names;
  std::vector<match> found;

 private:
  struct cell_view {
    holders::word held = 0;
    std::uint32_t width = 0;
  };
  const cell_table* table_of(block_key k) const {
    return index.tables[kv_index::impl::part_of(k)].load(std::memory_order_seq_cst);
  }
  cell_view cell(std::size_t block) const {
    const auto* table = table_of(chain[block]);
    return table ? cell_view{table->find(chain[block]), table->width()} : cell_view{};
  }
  void prefetch(std::size_t block) const {
    if (const auto* table = table_of(chain[block])) table->prefetch(chain[block]);
  }

  bool begin(const directory& now);
  bool any_tiered(const directory& now) const;
  bool all_closed() const;
  void emit(slot s, std::size_t blocks) { found.push_back({(*names)[s], static_cast<std::uint32_t>(blocks)}); }
  void drop(std::size_t word, std::uint64_t gone, std::size_t blocks);
  void narrow(cell_view at, std::size_t blocks);
  std::size_t walk();

  std::uint32_t holding(std::size_t block) const;
  void gallop();
  void search(std::size_t low, std::size_t high, std::uint32_t at_high);

  void walk_tiers(const directory& now);

  std::span<const block_key> chain;
  slot_bits candidates;  // device slots that hold every block so far
  std::uint32_t count = 0;

  // Walking with tiers: by tier, the instances (by device slot) that hold every block so far there or nearer.
  std::array<slot_bits, tiers> reach;
  std::array<slot_bits, tiers> holds;
  std::vector<std::array<std::uint32_t, tiers>> ends;  // by device slot
};

}  // namespace infernex::indexer
