#include "actors/engine/chain_set.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "messages/kv_digest.hpp"

namespace infernex::engine {

namespace {

constexpr std::uint32_t max_depth = (1U << 23) - 1;
constexpr auto most_holders = std::numeric_limits<std::uint16_t>::max();
/// Room that lists of changes keep from one difference to the next.
constexpr std::size_t spare_capacity = 65'536;
constexpr auto device = static_cast<std::size_t>(fb::KvTier::Device);

constexpr std::uint32_t bit_of(std::size_t tier) { return 1U << tier; }
constexpr fb::KvTier tier_of(std::size_t tier) { return static_cast<fb::KvTier>(tier); }

}  // namespace

bool chain_set::is_held(const entry& one) {
  return (one.holders[0] | one.holders[1] | one.holders[2] | one.holders[3]) != 0;
}

chain_set::node chain_set::attach(block_key key, node parent) {
  auto at = by_key_.find(key, [&](node each) { return entries_[each].key == key; });
  if (at == none) {
    at = entries_.take();
    auto& fresh = entries_[at];
    fresh.key = key;
    if (parent != none) fresh.depth = std::min(entries_[parent].depth + 1U, max_depth);
    by_key_.insert(key, at);
  }
  auto& one = entries_[at];
  if (parent != none && one.parent == none && !is_held(one)) {
    one.parent = parent;
    ++entries_[parent].links;
  }
  return at;
}

/// True: it was the first.
bool chain_set::count_up(node at, std::size_t kind) {
  auto& count = entries_[at].holders[kind];
  if (count < most_holders) return count++ == 0;
  ++more_holders_[std::uint64_t{at} * (kv_tiers + 1) + kind];
  return false;
}

/// True: it was the last.
bool chain_set::count_down(node at, std::size_t kind) {
  auto& count = entries_[at].holders[kind];
  if (count == most_holders) {
    const auto more = more_holders_.find(std::uint64_t{at} * (kv_tiers + 1) + kind);
    if (more != more_holders_.end()) {
      if (--more->second == 0) more_holders_.erase(more);
      return false;
    }
  }
  return --count == 0;
}

void chain_set::hold(node at, fb::KvTier tier) {
  const auto t = static_cast<std::size_t>(tier);
  if (!count_up(at, t)) return;
  auto& one = entries_[at];
  ++keys_;
  digest_ ^= digest_of(one.key, tier);
  if (t == device) enter_device(one);
  if (((one.published | one.to_add) & bit_of(t)) != 0) return;
  one.to_add |= bit_of(t);
  added_[t].push_back(at);
}

void chain_set::release(node at, fb::KvTier tier) {
  const auto t = static_cast<std::size_t>(tier);
  if (!count_down(at, t)) return;
  auto& one = entries_[at];
  --keys_;
  digest_ ^= digest_of(one.key, tier);
  if (t == device) leave_device(one);
  if ((one.published & ~one.to_remove & bit_of(t)) == 0) return;
  one.to_remove |= bit_of(t);
  removed_[t].push_back(at);
}

void chain_set::enter_device(entry& one) {
  if (one.parent != none) {
    auto& parent = entries_[one.parent];
    ++parent.followers;
    if (parent.holders[device] == 0) ++holes_;
  }
  holes_ -= one.followers;
  had_holes_ = had_holes_ || holes_ > 0;
}

void chain_set::leave_device(entry& one) {
  if (one.parent != none) {
    auto& parent = entries_[one.parent];
    --parent.followers;
    if (parent.holders[device] == 0) --holes_;
  }
  holes_ += one.followers;
  had_holes_ = had_holes_ || holes_ > 0;
}

void chain_set::pin(node at) { count_up(at, pins); }

void chain_set::unpin(node at) {
  if (count_down(at, pins)) settle(at);
}

void chain_set::settle(node at) {
  while (at != none) {
    auto& one = entries_[at];
    if (is_held(one)) return;
    // The link to its parent is told again when it comes back.
    const auto parent = std::exchange(one.parent, none);
    if (parent != none) --entries_[parent].links;
    if (one.links == 0 && (one.published | one.to_add | one.to_remove) == 0) {
      by_key_.erase(one.key, at);
      entries_.give_back(at);
    }
    at = parent;
  }
}

std::vector<block_key> chain_set::keys_of(const std::vector<node>& nodes, bool sorted, bool deepest_first) const {
  std::vector<block_key> keys(nodes.size());
  if (sorted) {
    std::ranges::transform(nodes, keys.begin(), [this](node at) { return entries_[at].key; });
    return keys;
  }
  // Sorting by counting: depths are few, keys many.
  std::vector<std::size_t> places;
  for (const auto at : nodes) {
    const std::size_t depth = entries_[at].depth;
    if (depth >= places.size()) places.resize(depth + 1);
    ++places[depth];
  }
  std::size_t next = 0;
  const auto assign = [&next](std::size_t& place) { next += std::exchange(place, next); };
  if (deepest_first)
    std::for_each(places.rbegin(), places.rend(), assign);
  else
    std::for_each(places.begin(), places.end(), assign);
  for (const auto at : nodes) keys[places[entries_[at].depth]++] = entries_[at].key;
  return keys;
}

std::vector<block_key> chain_set::take(std::vector<node>& listed, std::size_t tier, bool additions) {
  const auto bit = bit_of(tier);
  std::vector<node> changed;
  changed.reserve(listed.size());
  for (const auto at : listed) {
    auto& one = entries_[at];
    const bool held = one.holders[tier] > 0;
    if (held != additions || held == ((one.published & bit) != 0)) continue;
    one.published ^= bit;
    changed.push_back(at);
  }
  // Without holes the order of the events is that of the chains: no block was there before the one it follows, or
  // went after it. Holes are not counted on other tiers than the device.
  const bool sorted = tier == device && !had_holes_;
  auto keys = keys_of(changed, sorted, !additions);
  for (const auto at : listed) {
    // Only now, one by one: as long as an entry is listed it cannot go away.
    auto& one = entries_[at];
    if (additions)
      one.to_add &= ~bit;
    else
      one.to_remove &= ~bit;
    settle(at);
  }
  listed.clear();
  if (listed.capacity() > spare_capacity) listed.shrink_to_fit();
  return keys;
}

key_difference chain_set::take_difference() {
  key_difference result;
  for (std::size_t tier = 0; tier < kv_tiers; ++tier) {
    if (removed_[tier].empty() && added_[tier].empty()) continue;
    key_difference::change change;
    change.tier = tier_of(tier);
    change.removed = take(removed_[tier], tier, false);
    change.added = take(added_[tier], tier, true);
    if (!change.removed.empty() || !change.added.empty()) result.changes.push_back(std::move(change));
  }
  // One that is still there shows again if it matters: each wrong order leaves a hole after one of its events.
  had_holes_ = false;
  result.closed = closed();
  return result;
}

std::vector<tier_keys> chain_set::all_keys() const {
  std::vector<tier_keys> result;
  for (std::size_t tier = 0; tier < kv_tiers; ++tier) {
    std::vector<node> held;
    by_key_.for_each([&](node at) {
      if (entries_[at].holders[tier] > 0) held.push_back(at);
    });
    if (!held.empty()) result.push_back({tier_of(tier), keys_of(held, false, false)});
  }
  return result;
}

std::size_t chain_set::bytes() const {
  std::size_t lists = 0;
  for (const auto* each : {&added_, &removed_})
    for (const auto& list : *each) lists += list.capacity() * sizeof(node);
  // A node of the standard map: next, key and count, and its bucket.
  return entries_.bytes() + by_key_.bytes() + lists + more_holders_.size() * 40;
}

}  // namespace infernex::engine
