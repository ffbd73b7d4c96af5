#include "actors/simulator/prefix_cache.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace infernex::simulator {

namespace {

/// Names may be small numbers in a row; the index wants the upper half mixed.
std::uint64_t mixed(block_name name) { return (name ^ (name >> 32)) * 0x9E3779B97F4A7C15ULL; }

}  // namespace

prefix_cache::prefix_cache(std::uint32_t block_size, std::uint32_t capacity)
    : block_size_(block_size),
      free_(capacity),
      blocks_(capacity),
      first_free_(0),
      last_free_(capacity == 0 ? 0 : capacity - 1) {
  for (block_id id = 0; id < capacity; ++id) {
    blocks_[id].before = id == 0 ? capacity : id - 1;
    blocks_[id].after = id + 1;
  }
}

block_id prefix_cache::find(block_name name) const {
  return by_name_.find(mixed(name), [&](block_id id) { return blocks_[id].name == name; });
}

void prefix_cache::match(std::span<const block_name> chain, std::vector<block_id>& found) const {
  for (const auto name : chain) {
    const auto id = find(name);
    if (id == engine::hash_index::none) return;
    found.push_back(id);
  }
}

std::uint32_t prefix_cache::matched(std::span<const block_name> chain) const {
  const auto end =
      std::find_if(chain.begin(), chain.end(), [this](block_name n) { return find(n) == engine::hash_index::none; });
  return static_cast<std::uint32_t>(end - chain.begin());
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
    auto& taken = blocks_[id];
    unlink(id);
    if (std::exchange(taken.named, false)) {
      by_name_.erase(mixed(taken.name), id);
      const bool last = find(taken.name) == engine::hash_index::none;
      changes_.push_back({cache_change::kind::removed, last, 0, taken.name, 0});
    }
    taken.references = 1;
    blocks.push_back(id);
  }
}

void prefix_cache::seal(sequence_id of, std::span<const block_id> blocks, std::size_t first, std::size_t last,
                        std::span<const block_name> chain) {
  for (std::size_t i = first; i < last; ++i) {
    const bool new_name = find(chain[i]) == engine::hash_index::none;
    auto& sealed = blocks_[blocks[i]];
    sealed.name = chain[i];
    sealed.named = true;
    by_name_.insert(mixed(chain[i]), blocks[i]);
    changes_.push_back({cache_change::kind::stored, new_name, static_cast<std::uint32_t>(i), chain[i], of});
  }
}

void prefix_cache::release(std::span<const block_id> sequence) {
  for (auto id = sequence.rbegin(); id != sequence.rend(); ++id) {
    assert(blocks_[*id].references > 0);
    if (--blocks_[*id].references == 0) link_last(*id);
  }
}

void prefix_cache::clear() {
  by_name_ = {};
  for (auto& each : blocks_) each.named = false;
  changes_.push_back({cache_change::kind::cleared, false, 0, 0, 0});
}

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

}  // namespace infernex::simulator
