#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace infernex::indexer {

/// A number that stands for an instance in the tables.
using slot = std::uint32_t;
/// Slots fit into 12 bits.
inline constexpr slot slot_limit = 4096;

/// A set of slots in one 64-bit word, so that a reader gets it whole with one load. The low four bits say
/// how to read it: 0..5 is the number of slots that follow, 12 bits each; 15 means that the rest is the
/// address (16-byte aligned) of a bitset. A bitset stays with its key until the table is replaced.
namespace holders {

using word = std::uint64_t;
using bits = std::atomic<std::uint64_t>;
inline constexpr unsigned max_inline = 5;
inline constexpr word bitset_tag = 15;

inline bool is_bitset(word w) { return (w & 15) == bitset_tag; }
inline unsigned inline_count(word w) { return static_cast<unsigned>(w & 15); }
inline slot inline_at(word w, unsigned i) { return static_cast<slot>((w >> (4 + 12 * i)) & 0xfff); }
inline bits* bitset_of(word w) { return reinterpret_cast<bits*>(w & ~bitset_tag); }
inline word of_bitset(const bits* b) { return reinterpret_cast<word>(b) | bitset_tag; }

/// Precondition: inline_count(w) < max_inline.
inline word with_inline(word w, slot s) {
  const auto n = inline_count(w);
  return (w + 1) | (static_cast<word>(s) << (4 + 12 * n));
}

inline word without_inline(word w, slot s) {
  word left = 0;
  for (unsigned i = 0; i < inline_count(w); ++i)
    if (const auto at = inline_at(w, i); at != s) left = with_inline(left, at);
  return left;
}

inline bool contains_inline(word w, slot s) {
  for (unsigned i = 0; i < inline_count(w); ++i)
    if (inline_at(w, i) == s) return true;
  return false;
}

/// Calls `use(slot)` for each slot of a bitset of `width` words.
template <class Use>
void each_bit(const bits* set, std::uint32_t width, Use use) {
  for (std::uint32_t w = 0; w < width; ++w)
    for (auto rest = set[w].load(std::memory_order_acquire); rest != 0; rest &= rest - 1)
      use(static_cast<slot>(w * 64 + static_cast<unsigned>(std::countr_zero(rest))));
}

}  // namespace holders
}  // namespace infernex::indexer
