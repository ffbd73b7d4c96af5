#include "gateway/key_cache.hpp"

#include <utility>

namespace infernex::gateway {

std::uint64_t key_cache::mixed(std::uint64_t prompt_hash, std::uint32_t block_size) {
  return prompt_hash ^ (block_size * 0x9E3779B97F4A7C15ULL);  // 2^64 / golden ratio
}

std::uint64_t key_cache::cost(const prompt_keys& value) {
  // The list node, the hash node and its share of buckets come to about 128 bytes.
  return value.keys.capacity() * sizeof(std::uint64_t) + 128;
}

const prompt_keys* key_cache::get(std::uint64_t prompt_hash, std::uint32_t block_size) {
  const auto found = by_hash_.find(mixed(prompt_hash, block_size));
  if (found == by_hash_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &found->second->value;
}

void key_cache::put(std::uint64_t prompt_hash, std::uint32_t block_size, prompt_keys value) {
  const auto hash = mixed(prompt_hash, block_size);
  const auto added = cost(value);
  if (added > max_bytes_) return;
  if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
    bytes_ -= cost(found->second->value);
    entries_.erase(found->second);
    by_hash_.erase(found);
  }
  while (bytes_ + added > max_bytes_) {
    bytes_ -= cost(entries_.back().value);
    by_hash_.erase(entries_.back().hash);
    entries_.pop_back();
  }
  entries_.push_front({hash, std::move(value)});
  by_hash_[hash] = entries_.begin();
  bytes_ += added;
}

}  // namespace infernex::gateway
