#include "actors/indexer/cell_table.hpp"

#include <algorithm>
#include <bit>

namespace infernex::indexer {

namespace {
constexpr std::uint32_t min_capacity = 16;
constexpr std::uint32_t first_chunk_bitsets = 8;
constexpr std::uint32_t max_chunk_words = 1 << 13;
// At 0.75 a third of the cache lines are full, so a search for a key that is not there takes 1.6 lines on average.
constexpr std::uint64_t max_load(std::uint64_t capacity) { return capacity * 3 / 4; }
}  // namespace

cell_table::cell_table(std::uint32_t capacity, std::uint32_t width, byte_budget& budget, byte_lease lease)
    : cells_(capacity),
      mask_(capacity - 1),
      shift_(64 - static_cast<unsigned>(std::countr_zero(capacity))),
      width_(width),
      budget_(budget),
      lease_(std::move(lease)) {}

std::uint32_t cell_table::capacity_for(std::uint64_t keys) {
  return static_cast<std::uint32_t>(std::bit_ceil(std::max<std::uint64_t>(min_capacity, (keys + 1) * 2)));
}

bool cell_table::empty(holders::word w) const {
  if (!holders::is_bitset(w)) return holders::inline_count(w) == 0;
  const auto* set = holders::bitset_of(w);
  return std::all_of(set, set + width_, [](const auto& bits) { return bits.load(std::memory_order_relaxed) == 0; });
}

holders::bits* cell_table::new_bitset(std::uint64_t keep_free) {
  const std::uint32_t words = (width_ + 1) & ~1U;  // 16-byte aligned
  if (chunk_used_ + words > chunk_words_) {
    const auto wanted =
        std::min(std::max(chunk_words_ * 2, first_chunk_bitsets * words), std::max(max_chunk_words, words));
    const auto bytes = std::uint64_t{wanted} * sizeof(holders::bits);
    // The table that replaces this one will need as much again.
    if (!budget_.take(bytes, keep_free + bytes)) return nullptr;
    bitset_bytes_ += bytes;
    chunks_.push_back({std::unique_ptr<holders::bits[]>(new holders::bits[wanted]()), byte_lease(&budget_, bytes)});
    chunk_words_ = wanted;
    chunk_used_ = 0;
  }
  auto* set = chunks_.back().words.get() + chunk_used_;
  chunk_used_ += words;
  return set;
}

void cell_table::claim(cell& free, key k, holders::word first) {
  // Holders first: whoever finds the key finds them.
  free.held_by.store(first, std::memory_order_relaxed);
  free.name.store(k, std::memory_order_release);
  ++claimed_;
  ++live_;
}

cell_table::outcome cell_table::add(key k, slot s, std::uint64_t keep_free) {
  auto& c = const_cast<cell&>(find_or_free(k));
  if (k != 0 && c.name.load(std::memory_order_relaxed) == 0) {
    if (claimed_ >= max_load(capacity())) return outcome::table_full;
    claim(c, k, holders::with_inline(0, s));
    return outcome::done;
  }
  const auto held = c.held_by.load(std::memory_order_relaxed);
  if (holders::is_bitset(held)) {
    if (s / 64 >= width_) return outcome::too_narrow;
    auto& bits = holders::bitset_of(held)[s / 64];
    const auto before = bits.load(std::memory_order_relaxed);
    const auto bit = std::uint64_t{1} << (s % 64);
    if (before & bit) return outcome::nothing_to_do;
    if (before == 0 && empty(held)) ++live_;
    bits.store(before | bit, std::memory_order_release);
    return outcome::done;
  }
  if (holders::contains_inline(held, s)) return outcome::nothing_to_do;
  if (const auto n = holders::inline_count(held); n < holders::max_inline) {
    if (n == 0) ++live_;
    c.held_by.store(holders::with_inline(held, s), std::memory_order_release);
    return outcome::done;
  }
  // Inline slots may be larger than the bitsets of a table made when there were fewer.
  auto largest = s;
  for (unsigned i = 0; i < holders::max_inline; ++i) largest = std::max(largest, holders::inline_at(held, i));
  if (largest / 64 >= width_) return outcome::too_narrow;
  auto* set = new_bitset(keep_free);
  if (!set) return outcome::no_memory;
  const auto mark = [set](slot at) { set[at / 64].fetch_or(std::uint64_t{1} << (at % 64), std::memory_order_relaxed); };
  for (unsigned i = 0; i < holders::max_inline; ++i) mark(holders::inline_at(held, i));
  mark(s);
  c.held_by.store(holders::of_bitset(set), std::memory_order_release);
  return outcome::done;
}

cell_table::outcome cell_table::remove(key k, slot s) {
  auto* c = const_cast<cell*>(find_cell(k));
  if (!c) return outcome::nothing_to_do;
  const auto held = c->held_by.load(std::memory_order_relaxed);
  if (holders::is_bitset(held)) {
    if (s / 64 >= width_) return outcome::nothing_to_do;
    auto& bits = holders::bitset_of(held)[s / 64];
    const auto before = bits.load(std::memory_order_relaxed);
    const auto bit = std::uint64_t{1} << (s % 64);
    if (!(before & bit)) return outcome::nothing_to_do;
    bits.store(before & ~bit, std::memory_order_release);
    if ((before & ~bit) == 0 && empty(held)) --live_;
    return outcome::done;
  }
  if (!holders::contains_inline(held, s)) return outcome::nothing_to_do;
  const auto left = holders::without_inline(held, s);
  c->held_by.store(left, std::memory_order_release);
  if (left == 0) --live_;
  return outcome::done;
}

template <class Use>
void cell_table::each_kept(const slot_set& dropped, Use use) const {
  std::vector<slot> kept;
  const auto keep = [&](slot s) {
    if (!((dropped[s / 64] >> (s % 64)) & 1)) kept.push_back(s);
  };
  const auto visit = [&](key k, const cell& c) {
    kept.clear();
    const auto held = c.held_by.load(std::memory_order_relaxed);
    if (holders::is_bitset(held)) {
      holders::each_bit(holders::bitset_of(held), width_, keep);
    } else {
      for (unsigned i = 0; i < holders::inline_count(held); ++i) keep(holders::inline_at(held, i));
    }
    if (!kept.empty()) use(k, kept);
  };
  visit(0, zero_);
  for (std::uint32_t i = 0; i <= mask_; ++i)
    if (const auto k = cells_[i].name.load(std::memory_order_relaxed); k != 0) visit(k, cells_[i]);
}

std::uint32_t cell_table::live_without(const slot_set& dropped) const {
  std::uint32_t count = 0;
  each_kept(dropped, [&count](key, const auto&) { ++count; });
  return count;
}

bool cell_table::copy_live(cell_table& to, const slot_set& dropped) const {
  bool complete = true;
  each_kept(dropped, [&](key k, const std::vector<slot>& kept) {
    holders::word word = 0;
    if (kept.size() <= holders::max_inline) {
      for (const auto s : kept) word = holders::with_inline(word, s);
    } else if (auto* set = to.new_bitset(0)) {
      for (const auto s : kept) set[s / 64].fetch_or(std::uint64_t{1} << (s % 64), std::memory_order_relaxed);
      word = holders::of_bitset(set);
    } else {
      complete = false;
      return;
    }
    if (k != 0) {
      to.claim(const_cast<cell&>(to.find_or_free(k)), k, word);
    } else {
      to.zero_.held_by.store(word, std::memory_order_relaxed);
      ++to.live_;
    }
  });
  return complete;
}

}  // namespace infernex::indexer
