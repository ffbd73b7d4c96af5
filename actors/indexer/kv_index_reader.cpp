#include "actors/indexer/kv_index_reader.hpp"

#include <algorithm>
#include <bit>

namespace infernex::indexer {

namespace {
constexpr std::size_t prefetch_distance = 8;
/// Blocks looked at together, their cells fetched at the same time.
constexpr std::size_t fan_out = 8;

template <class Use>
void each_slot(std::uint64_t bits, std::size_t word, Use use) {
  for (; bits != 0; bits &= bits - 1) use(static_cast<slot>(word * 64 + static_cast<unsigned>(std::countr_zero(bits))));
}
}  // namespace

void kv_index::reader::impl::drop(std::size_t word, std::uint64_t gone, std::size_t blocks) {
  candidates[word] &= ~gone;
  count -= static_cast<std::uint32_t>(std::popcount(gone));
  if (blocks != 0) each_slot(gone, word, [&](slot s) { emit(s, blocks); });
}

/// Keeps the candidates that hold the block after `blocks` others.
void kv_index::reader::impl::narrow(cell_view at, std::size_t blocks) {
  if (holders::is_bitset(at.held)) {
    const auto* set = holders::bitset_of(at.held);
    for (std::size_t w = 0; w < candidates.size(); ++w) {
      const auto here = w < at.width ? set[w].load(std::memory_order_acquire) : 0;
      if (const auto gone = candidates[w] & ~here) drop(w, gone, blocks);
    }
    return;
  }
  std::uint32_t kept = 0;
  for (unsigned i = 0; i < holders::inline_count(at.held); ++i)
    kept += has(candidates, holders::inline_at(at.held, i)) ? 1 : 0;
  if (kept == count) return;
  for (std::size_t w = 0; w < candidates.size(); ++w) {
    if (candidates[w] == 0) continue;
    std::uint64_t here = 0;
    for (unsigned i = 0; i < holders::inline_count(at.held); ++i)
      if (const auto s = holders::inline_at(at.held, i); s / 64 == w) here |= std::uint64_t{1} << (s % 64);
    if (const auto gone = candidates[w] & ~here) drop(w, gone, blocks);
  }
}

/// The instances that hold the first block become the candidates. False: a block of another tier is among them.
bool kv_index::reader::impl::begin(const directory& now) {
  candidates.assign(now.device.size(), 0);
  count = 0;
  bool lower = false;
  const auto first = cell(0);
  if (holders::is_bitset(first.held)) {
    const auto* set = holders::bitset_of(first.held);
    for (std::size_t w = 0; w < std::min<std::size_t>(candidates.size(), first.width); ++w) {
      const auto here = set[w].load(std::memory_order_acquire);
      candidates[w] = here & now.device[w];
      count += static_cast<std::uint32_t>(std::popcount(candidates[w]));
      lower = lower || (w < now.lower.size() && (here & now.lower[w]) != 0);
    }
  } else {
    for (unsigned i = 0; i < holders::inline_count(first.held); ++i) {
      const auto s = holders::inline_at(first.held, i);
      lower = lower || has(now.lower, s);
      if (!has(now.device, s)) continue;
      candidates[s / 64] |= std::uint64_t{1} << (s % 64);
      ++count;
    }
  }
  return !lower;
}

bool kv_index::reader::impl::any_tiered(const directory& now) const {
  if (now.lower.empty()) return false;
  for (std::size_t w = 0; w < candidates.size(); ++w)
    if (candidates[w] & now.tiered[w]) return true;
  return false;
}

bool kv_index::reader::impl::all_closed() const {
  for (std::size_t w = 0; w < candidates.size(); ++w)
    if (candidates[w] & index.open[w].load(std::memory_order_seq_cst)) return false;
  return true;
}

/// Block by block, until no candidate is left. The number of blocks the last ones hold.
std::size_t kv_index::reader::impl::walk() {
  std::size_t i = 1;
  for (; i < chain.size() && count != 0; ++i) {
    if (i + prefetch_distance < chain.size()) prefetch(i + prefetch_distance);
    narrow(cell(i), i);
  }
  return i;
}

/// How many candidates hold a block.
std::uint32_t kv_index::reader::impl::holding(std::size_t block) const {
  const auto at = cell(block);
  std::uint32_t sum = 0;
  if (!holders::is_bitset(at.held)) {
    for (unsigned i = 0; i < holders::inline_count(at.held); ++i)
      sum += has(candidates, holders::inline_at(at.held, i)) ? 1 : 0;
    return sum;
  }
  const auto* set = holders::bitset_of(at.held);
  for (std::size_t w = 0; w < std::min<std::size_t>(candidates.size(), at.width); ++w)
    if (candidates[w])
      sum += static_cast<std::uint32_t>(std::popcount(candidates[w] & set[w].load(std::memory_order_acquire)));
  return sum;
}

/// Where no candidate has a hole, whoever holds a block holds every block before it. So if all candidates hold a block,
/// nothing before it needs to be looked at; if fewer do, the others have ended somewhere before it.
void kv_index::reader::impl::gallop() {
  const auto last = chain.size() - 1;
  std::size_t low = 0;
  for (std::size_t p = 1; low != last && count != 0; p = p * 2 + 1) {
    const auto high = std::min(p, last);
    if (const auto there = holding(high); there < count) search(low, high, there);
    low = high;
  }
}

/// Finds the blocks in (low, high] at which candidates end, knowing that all hold low, and only `at_high` of them high.
/// What changes meanwhile cannot mislead it by more than the change: a candidate stays only if it held `high`, or
/// whatever block was looked at last, at some moment of the lookup.
void kv_index::reader::impl::search(std::size_t low, std::size_t high, std::uint32_t at_high) {
  if (high - low == 1) return narrow(cell(high), high);
  const auto step = (high - low + fan_out - 1) / fan_out;
  for (auto p = low + step; p < high; p += step) prefetch(p);
  for (auto p = low + step; p < high && count > at_high; p += step) {
    if (const auto here = holding(p); here < count) search(low, p, here);
    low = p;
  }
  if (count > at_high) search(low, high, at_high);
}

std::span<const match> kv_index::reader::impl::lookup(std::span<const block_key> keys, bool may_gallop) {
  found.clear();
  if (keys.empty()) return found;
  const reclaimer::reading guard(index.reclaim, *mark);
  const auto* now = index.current.load(std::memory_order_seq_cst);
  if (names != now->names) names = now->names;
  chain = keys;
  if (may_gallop) {  // where it will look first
    for (std::size_t p = 0; p < chain.size(); p = p * 2 + 1) prefetch(p);
    prefetch(chain.size() - 1);
  }
  const auto openings = index.openings.load(std::memory_order_seq_cst);
  if (!begin(*now) || any_tiered(*now)) {
    walk_tiers(*now);
    return found;
  }
  auto blocks = chain.size();
  bool done = false;
  if (may_gallop && count != 0 && chain.size() > 2 && all_closed()) {
    gallop();
    done = index.openings.load(std::memory_order_seq_cst) == openings;
    if (!done) {
      found.clear();
      begin(*now);
    }
  }
  if (!done) blocks = walk();
  if (count == 0) return found;
  for (std::size_t w = 0; w < candidates.size(); ++w)
    if (const auto rest = candidates[w]) drop(w, rest, blocks);
  return found;
}

kv_index::reader::reader(const kv_index& index) : impl_(std::make_unique<impl>(*index.impl_)) {}
kv_index::reader::~reader() = default;

std::span<const match> kv_index::reader::lookup(std::span<const block_key> chain) { return impl_->lookup(chain, true); }
std::span<const match> kv_index::reader::walk(std::span<const block_key> chain) { return impl_->lookup(chain, false); }

void kv_index::reader::each_key(std::string_view instance, std::uint32_t part,
                                const std::function<void(block_key)>& use) {
  impl_->each_key(instance, part, use);
}

}  // namespace infernex::indexer
