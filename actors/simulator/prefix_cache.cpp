#include "actors/simulator/prefix_cache.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <xxhash.h>

namespace infernex::simulator {

prefix_cache::prefix_cache(std::uint32_t block_size, std::uint32_t capacity, std::uint64_t seed)
    : block_size_(block_size),
      seed_(seed),
      free_(capacity),
      blocks_(capacity),
      first_free_(0),
      last_free_(capacity == 0 ? 0 : capacity - 1) {
  for (block_id id = 0; id < capacity; ++id) {
    blocks_[id].before = id == 0 ? capacity : id - 1;
    blocks_[id].after = id + 1;
  }
}

engine_hash prefix_cache::root(std::string_view salt) const {
  return XXH3_64bits_withSeed(salt.data(), salt.size(), seed_);
}

engine_hash prefix_cache::next(engine_hash parent, std::span<const token_id> tokens) const {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), parent);
}

std::vector<block_id> prefix_cache::match(std::span<const token_id> tokens, std::string_view salt) const {
  std::vector<block_id> found;
  if (tokens.empty()) return found;
  const auto limit = (tokens.size() - 1) / block_size_;
  engine_hash hash = root(salt);
  while (found.size() < limit) {
    hash = next(hash, tokens.subspan(found.size() * block_size_, block_size_));
    const auto entry = by_hash_.find(hash);
    if (entry == by_hash_.end()) break;
    found.push_back(entry->second);
  }
  return found;
}

bool prefix_cache::can_allocate(std::size_t count, std::span<const block_id> reused) const {
  const auto revived =
      std::count_if(reused.begin(), reused.end(), [this](block_id id) { return blocks_[id].references == 0; });
  return count + static_cast<std::size_t>(revived) <= free_;
}

void prefix_cache::hold(std::span<const block_id> blocks) {
  for (block_id id : blocks) {
    if (blocks_[id].references++ == 0) unlink(id);
  }
}

void prefix_cache::allocate(std::size_t count, std::vector<block_id>& blocks) {
  assert(can_allocate(count));
  for (; count > 0; --count) {
    const block_id id = first_free_;
    unlink(id);
    if (blocks_[id].named) {
      events_.push_back(block_removed{blocks_[id].hash});
      forget(id);
    }
    blocks_[id].references = 1;
    blocks.push_back(id);
  }
}

void prefix_cache::seal(std::span<const block_id> sequence, std::size_t first, std::size_t last,
                        std::span<const token_id> tokens, std::string_view salt) {
  if (first >= last) return;
  blocks_stored event;
  engine_hash hash = root(salt);
  if (first > 0) {
    hash = blocks_[sequence[first - 1]].hash;
    event.parent = hash;
  } else {
    event.salt = salt;
  }
  for (std::size_t i = first; i < last; ++i) {
    auto& sealed = blocks_[sequence[i]];
    hash = next(hash, tokens.subspan(i * block_size_, block_size_));
    sealed.hash = hash;
    sealed.named = true;
    by_hash_.emplace(hash, sequence[i]);
    event.hashes.push_back(hash);
  }
  const auto covered = tokens.subspan(first * block_size_, (last - first) * block_size_);
  event.tokens.assign(covered.begin(), covered.end());
  events_.push_back(std::move(event));
}

void prefix_cache::release(std::span<const block_id> sequence) {
  for (auto id = sequence.rbegin(); id != sequence.rend(); ++id) {
    assert(blocks_[*id].references > 0);
    if (--blocks_[*id].references == 0) link_last(*id);
  }
}

void prefix_cache::clear() {
  assert(used() == 0);
  by_hash_.clear();
  for (auto& each : blocks_) each.named = false;
  events_.push_back(all_blocks_cleared{});
}

std::vector<kv_event> prefix_cache::take_events() { return std::exchange(events_, {}); }

void prefix_cache::unlink(block_id id) {
  const auto [before, after] = std::pair(blocks_[id].before, blocks_[id].after);
  (before == capacity() ? first_free_ : blocks_[before].after) = after;
  (after == capacity() ? last_free_ : blocks_[after].before) = before;
  --free_;
}

void prefix_cache::link_last(block_id id) {
  blocks_[id].before = free_ == 0 ? capacity() : last_free_;
  blocks_[id].after = capacity();
  (free_ == 0 ? first_free_ : blocks_[last_free_].after) = id;
  last_free_ = id;
  ++free_;
}

void prefix_cache::forget(block_id id) {
  const auto [from, to] = by_hash_.equal_range(blocks_[id].hash);
  const auto entry = std::find_if(from, to, [id](const auto& each) { return each.second == id; });
  if (entry != to) by_hash_.erase(entry);
  blocks_[id].named = false;
}

}  // namespace infernex::simulator
