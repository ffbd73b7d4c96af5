#include "actors/engine/mirror.hpp"

#include <algorithm>
#include <utility>

#include <xxhash.h>

namespace infernex::engine {

namespace {

/// Groups of a hybrid model whose removals are to be ignored; models have a handful.
constexpr std::size_t max_sparse_groups = 64;

/// A block that depends on more than its tokens (an image) gets a chain of its own, which no plain prompt
/// can name.
block_key with_extra(block_key parent, const std::string& extra) {
  return extra.empty() ? parent : XXH3_64bits_withSeed(extra.data(), extra.size(), parent);
}

}  // namespace

mirror::mirror(mirror_settings settings)
    : settings_(std::move(settings)), block_size_(settings_.block_size), parked_(settings_.max_parked_blocks) {}

void mirror::apply(const kv_event& event) {
  if (const auto* stored = std::get_if<stored_blocks>(&event)) return store(*stored);
  if (const auto* removed = std::get_if<removed_blocks>(&event)) return remove(*removed);
  clear();
}

void mirror::clear() {
  blocks_.clear();
  holders_.clear();
  parked_.clear();
  sparse_groups_.clear();
  block_size_ = settings_.block_size;
  other_block_size_.reset();
  digest_ = 0;
  left_out_ = false;
  cleared_ = true;
  added_.clear();
  removed_.clear();
}

std::vector<block_key> mirror::all_keys() const {
  std::vector<block_key> keys;
  keys.reserve(holders_.size());
  for (const auto& [key, count] : holders_) keys.push_back(key);
  return keys;
}

key_difference mirror::take_difference() {
  key_difference change{
      std::exchange(cleared_, false), {removed_.begin(), removed_.end()}, {added_.begin(), added_.end()}};
  removed_.clear();
  added_.clear();
  return change;
}

void mirror::leave_out(drop_reason reason) {
  ++dropped_[reason];
  left_out_ = true;
}

bool mirror::is_usable(const stored_blocks& blocks) {
  if (!holds_every_token(blocks.attention_kind)) {
    if (blocks.group && sparse_groups_.size() < max_sparse_groups) sparse_groups_.insert(*blocks.group);
    ++dropped_[drop_reason::sparse_group];
    return false;
  }
  if (blocks.tokens.empty()) return true;
  if (blocks.tokens.size() != std::uint64_t{blocks.block_size} * blocks.hashes.size()) {
    leave_out(drop_reason::malformed_event);
    return false;
  }
  if (!block_size_) block_size_ = blocks.block_size;
  if (blocks.block_size == *block_size_) return true;
  other_block_size_ = blocks.block_size;
  leave_out(drop_reason::block_size_mismatch);
  return false;
}

void mirror::store(const stored_blocks& blocks) {
  if (blocks.hashes.empty() || !is_usable(blocks)) return;
  if (blocks.tokens.empty()) return add_copies(blocks);
  if (!blocks.parent) {
    const key_root root{settings_.model, blocks.adapter, blocks.salt, *block_size_};
    return place({blocks, std::vector<bool>(blocks.hashes.size(), false)}, root_key(root));
  }
  if (const auto parent = blocks_.find(*blocks.parent); parent != blocks_.end())
    return place({blocks, std::vector<bool>(blocks.hashes.size(), false)}, parent->second.key);
  if (std::ranges::all_of(blocks.hashes, [this](auto hash) { return blocks_.contains(hash); }))
    return add_copies(blocks);
  if (!parked_.park(blocks)) leave_out(drop_reason::parking_full);
}

void mirror::add_copies(const stored_blocks& blocks) {
  for (const auto hash : blocks.hashes) {
    const auto held = blocks_.find(hash);
    if (held == blocks_.end())
      ++dropped_[drop_reason::unknown_block];
    else
      ++held->second.copies[static_cast<std::size_t>(blocks.tier)];
  }
}

/// Computes the keys of these blocks, and of all that waited for one of them.
void mirror::place(parked_blocks::entry first, block_key parent) {
  std::vector<std::pair<parked_blocks::entry, block_key>> work;
  work.emplace_back(std::move(first), parent);
  while (!work.empty()) {
    auto [entry, key] = std::move(work.back());
    work.pop_back();
    const auto& blocks = entry.blocks;
    const std::span<const std::uint32_t> tokens(blocks.tokens);
    for (std::size_t i = 0; i < blocks.hashes.size(); ++i) {
      if (!blocks.extras.empty()) key = with_extra(key, blocks.extras[i]);
      key = next_key(key, tokens.subspan(i * blocks.block_size, blocks.block_size));
      if (!entry.gone[i]) hold(blocks.hashes[i], key, blocks.tier);
      if (parked_.size() == 0) continue;
      for (auto& child : parked_.take_children(blocks.hashes[i])) work.emplace_back(std::move(child), key);
    }
  }
}

void mirror::hold(std::uint64_t hash, block_key key, block_tier tier) {
  auto held = blocks_.find(hash);
  if (held == blocks_.end()) {
    if (blocks_.size() >= settings_.max_blocks) return leave_out(drop_reason::mirror_full);
    held = blocks_.emplace(hash, held_block{key, {}}).first;
    if (holders_[key]++ == 0) {
      digest_ ^= key;
      if (removed_.erase(key) == 0) added_.insert(key);
    }
  }
  ++held->second.copies[static_cast<std::size_t>(tier)];
}

void mirror::remove(const removed_blocks& blocks) {
  if (blocks.group && sparse_groups_.contains(*blocks.group)) return;
  const auto tier = static_cast<std::size_t>(blocks.tier);
  for (const auto hash : blocks.hashes) {
    const auto held = blocks_.find(hash);
    if (held == blocks_.end() || held->second.copies[tier] == 0) {
      if (!parked_.remove(hash, blocks.tier)) ++dropped_[drop_reason::unknown_block];
      continue;
    }
    auto& copies = held->second.copies;
    if (--copies[tier] > 0 || std::ranges::any_of(copies, [](auto count) { return count > 0; })) continue;
    const auto key = held->second.key;
    blocks_.erase(held);
    release(key);
  }
}

void mirror::release(block_key key) {
  const auto holder = holders_.find(key);
  if (--holder->second > 0) return;
  holders_.erase(holder);
  digest_ ^= key;
  if (added_.erase(key) == 0) removed_.insert(key);
}

}  // namespace infernex::engine
