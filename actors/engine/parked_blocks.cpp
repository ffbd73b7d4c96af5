#include "actors/engine/parked_blocks.hpp"

#include <algorithm>
#include <utility>

namespace infernex::engine {

namespace {

void erase_pair(std::unordered_multimap<std::uint64_t, std::uint64_t>& map, std::uint64_t key, std::uint64_t content) {
  for (auto [at, end] = map.equal_range(key); at != end; ++at)
    if (at->second == content) {
      map.erase(at);
      return;
    }
}

/// Its hash, its place among the hashes, and whether it is gone; an event's own place.
constexpr std::size_t block_overhead = 64;
constexpr std::size_t entry_overhead = 384;

std::size_t bytes_of(const stored_blocks& blocks) {
  auto bytes = entry_overhead + blocks.hashes.size() * block_overhead + blocks.tokens.size() * sizeof(std::uint32_t) +
               blocks.adapter.size() + blocks.salt.size();
  for (const auto& extra : blocks.extras) bytes += sizeof(extra) + extra.size();
  return bytes;
}

}  // namespace

bool parked_blocks::park(stored_blocks blocks) {
  const auto bytes = bytes_of(blocks);
  if (size_ + blocks.hashes.size() > max_blocks_ || bytes_ + bytes > max_bytes_) return false;
  size_ += blocks.hashes.size();
  bytes_ += bytes;
  const id fresh = next_++;
  by_parent_.emplace(*blocks.parent, fresh);
  for (const auto hash : blocks.hashes) by_hash_.emplace(hash, fresh);
  const auto count = blocks.hashes.size();
  entries_.emplace(fresh, entry{std::move(blocks), std::vector<bool>(count, false)});
  return true;
}

std::optional<stored_blocks> parked_blocks::find(std::uint64_t hash) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  const auto& all = entries_.at(found->second).blocks;
  const auto i = static_cast<std::size_t>(std::ranges::find(all.hashes, hash) - all.hashes.begin());
  stored_blocks one;
  one.hashes = {hash};
  one.parent = i == 0 ? all.parent : all.hashes[i - 1];
  const auto tokens = all.tokens.begin() + static_cast<std::ptrdiff_t>(i * all.block_size);
  one.tokens.assign(tokens, tokens + all.block_size);
  one.block_size = all.block_size;
  one.tier = all.tier;
  one.adapter = all.adapter;
  one.salt = all.salt;
  if (i < all.extras.size()) one.extras = {all.extras[i]};
  one.group = all.group;
  one.attention_kind = all.attention_kind;
  return one;
}

bool parked_blocks::remove(std::uint64_t hash, fb::KvTier tier) {
  for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at) {
    auto& waiting = entries_.at(at->second);
    if (waiting.blocks.tier != tier) continue;
    for (std::size_t i = 0; i < waiting.gone.size(); ++i) {
      if (waiting.blocks.hashes[i] != hash || waiting.gone[i]) continue;
      waiting.gone[i] = true;
      if (std::ranges::all_of(waiting.gone, [](bool gone) { return gone; })) take(at->second);
      return true;
    }
  }
  return false;
}

std::vector<parked_blocks::entry> parked_blocks::take_children(std::uint64_t parent) {
  std::vector<id> ids;
  for (auto [at, end] = by_parent_.equal_range(parent); at != end; ++at) ids.push_back(at->second);
  std::ranges::sort(ids);  // in the order in which they came
  std::vector<entry> children;
  children.reserve(ids.size());
  for (const auto which : ids) children.push_back(take(which));
  return children;
}

void parked_blocks::clear() {
  entries_.clear();
  by_parent_.clear();
  by_hash_.clear();
  size_ = bytes_ = 0;
}

parked_blocks::entry parked_blocks::take(id which) {
  auto taken = std::move(entries_.extract(which).mapped());
  size_ -= taken.blocks.hashes.size();
  bytes_ -= bytes_of(taken.blocks);
  erase_pair(by_parent_, *taken.blocks.parent, which);
  for (const auto hash : taken.blocks.hashes) erase_pair(by_hash_, hash, which);
  return taken;
}

}  // namespace infernex::engine
