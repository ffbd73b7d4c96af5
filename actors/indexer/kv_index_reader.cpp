#include <bit>

#include "actors/indexer/kv_index_state.hpp"

namespace infernex::indexer {

namespace {
constexpr std::size_t prefetch_distance = 8;
}

struct kv_index::reader::impl {
  explicit impl(const kv_index::impl& read) : index(read), mark(read.reclaim.enrol()) {}

  const kv_index::impl& index;
  reclaimer::mark* mark;
  /// Keeps the names of the last result; copied only when instances have come or gone.
  std::shared_ptr<const directory::name_list> names;
  std::vector<match> found;
  std::vector<std::uint64_t> candidates;  // bitset of slots that hold every block so far
  std::uint32_t count = 0;

  void drop(std::size_t word, std::uint64_t gone, std::size_t blocks) {
    candidates[word] &= ~gone;
    count -= static_cast<std::uint32_t>(std::popcount(gone));
    if (blocks == 0) return;
    for (; gone != 0; gone &= gone - 1) {
      const auto s = word * 64 + static_cast<unsigned>(std::countr_zero(gone));
      found.push_back({(*names)[s], static_cast<std::uint32_t>(blocks)});
    }
  }

  /// Keeps the candidates that hold the block after `blocks` others.
  void narrow(holders::word held, std::uint32_t width, std::size_t blocks) {
    if (holders::is_bitset(held)) {
      const auto* set = holders::bitset_of(held);
      for (std::size_t w = 0; w < candidates.size(); ++w) {
        const auto here = w < width ? set[w].load(std::memory_order_acquire) : 0;
        if (const auto gone = candidates[w] & ~here) drop(w, gone, blocks);
      }
      return;
    }
    std::uint32_t kept = 0;
    for (unsigned i = 0; i < holders::inline_count(held); ++i) {
      const auto s = holders::inline_at(held, i);
      if (s / 64 < candidates.size()) kept += (candidates[s / 64] >> (s % 64)) & 1;
    }
    if (kept == count) return;
    for (std::size_t w = 0; w < candidates.size(); ++w) {
      if (candidates[w] == 0) continue;
      std::uint64_t here = 0;
      for (unsigned i = 0; i < holders::inline_count(held); ++i)
        if (const auto s = holders::inline_at(held, i); s / 64 == w) here |= std::uint64_t{1} << (s % 64);
      if (const auto gone = candidates[w] & ~here) drop(w, gone, blocks);
    }
  }
};

kv_index::reader::reader(const kv_index& index) : impl_(std::make_unique<impl>(*index.impl_)) {}
kv_index::reader::~reader() { impl_->index.reclaim.leave(impl_->mark); }

std::span<const match> kv_index::reader::lookup(std::span<const block_key> chain) {
  auto& me = *impl_;
  const auto& index = me.index;
  me.found.clear();
  const reclaimer::reading guard(index.reclaim, *me.mark);
  const auto* now = index.current.load(std::memory_order_seq_cst);
  if (me.names != now->names) me.names = now->names;
  me.candidates.assign(now->alive.begin(), now->alive.end());
  me.count = 0;
  for (const auto word : me.candidates) me.count += static_cast<std::uint32_t>(std::popcount(word));

  const auto table_of = [&index](block_key k) {
    return index.tables[kv_index::impl::part_of(k)].load(std::memory_order_seq_cst);
  };
  std::size_t i = 0;
  for (; i < chain.size() && me.count != 0; ++i) {
    if (i != 0 && i + prefetch_distance < chain.size())
      if (const auto* ahead = table_of(chain[i + prefetch_distance])) ahead->prefetch(chain[i + prefetch_distance]);
    const auto* table = table_of(chain[i]);
    me.narrow(table ? table->find(chain[i]) : 0, table ? table->width() : 0, i);
  }
  for (std::size_t w = 0; w < me.candidates.size(); ++w)
    if (const auto rest = me.candidates[w]) me.drop(w, rest, i);
  return me.found;
}

}  // namespace infernex::indexer
