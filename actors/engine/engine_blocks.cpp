#include "actors/engine/engine_blocks.hpp"

#include <algorithm>
#include <limits>

namespace infernex::engine {

namespace {

constexpr std::uint32_t bit_of(std::size_t tier) { return 1U << tier; }

}  // namespace

std::uint64_t engine_blocks::row(id at, std::size_t tier, std::uint32_t group) {
  return (std::uint64_t{at} * kv_tiers + tier) * (last_group + 1) + group;
}

engine_blocks::id engine_blocks::find(std::uint64_t hash) const {
  return by_hash_.find(spread(hash), [&](id each) { return blocks_[each].hash == hash; });
}

engine_blocks::id engine_blocks::add(std::uint64_t hash, std::uint32_t link, std::optional<std::uint32_t> group) {
  const auto at = blocks_.take();
  auto& fresh = blocks_[at];
  fresh.hash = hash;
  fresh.link = link;
  fresh.home = std::min(group.value_or(0), last_group);
  by_hash_.insert(spread(hash), at);
  return at;
}

void engine_blocks::erase(id at) {
  by_hash_.erase(spread(blocks_[at].hash), at);
  blocks_.give_back(at);
}

bool engine_blocks::is_held(id at) const {
  const auto& one = blocks_[at];
  return (one.copies[0] | one.copies[1] | one.copies[2] | one.more) != 0;
}

bool engine_blocks::add_copy(id at, fb::KvTier tier, std::optional<std::uint32_t> group) {
  const auto t = static_cast<std::size_t>(tier);
  auto& one = blocks_[at];
  const bool first = !is_held(one, t);
  const auto g = group ? std::min(*group, last_group) : one.home;
  if (g == one.home && one.copies[t] < std::numeric_limits<std::uint8_t>::max()) {
    ++one.copies[t];
  } else {
    ++more_copies_[row(at, t, g)];
    one.more |= bit_of(t);
  }
  return first;
}

/// False: there is none.
bool engine_blocks::take_from_more(id at, std::size_t tier, std::uint32_t group) {
  const auto found = more_copies_.find(row(at, tier, group));
  if (found == more_copies_.end()) return false;
  if (--found->second > 0) return true;
  more_copies_.erase(found);
  for (std::uint32_t g = 0; g <= last_group; ++g)
    if (more_copies_.contains(row(at, tier, g))) return true;
  blocks_[at].more &= ~bit_of(tier);
  return true;
}

engine_blocks::removal engine_blocks::remove_copy(id at, fb::KvTier tier, std::optional<std::uint32_t> group) {
  const auto t = static_cast<std::size_t>(tier);
  auto& one = blocks_[at];
  if (!is_held(one, t)) return removal::unknown;
  const bool has_more = (one.more >> t & 1U) != 0;
  const auto g = group ? std::min(*group, last_group) : one.home;
  if (!has_more || !take_from_more(at, t, g)) {
    if (g == one.home && one.copies[t] > 0) {
      --one.copies[t];
    } else {
      if (group) return removal::unknown;
      for (std::uint32_t other = 0; other <= last_group; ++other)
        if (take_from_more(at, t, other)) break;
    }
  }
  return is_held(one, t) ? removal::others_left : removal::last_of_tier;
}

std::size_t engine_blocks::bytes() const {
  // A node of the standard map: next, row and count, and its bucket.
  return blocks_.bytes() + by_hash_.bytes() + more_copies_.size() * 40;
}

}  // namespace infernex::engine
