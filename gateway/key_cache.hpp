#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace infernex::gateway {

/// A prompt as the router sees it.
struct prompt_keys {
  std::uint32_t prompt_tokens = 0;
  /// Keys of its cacheable blocks.
  std::vector<std::uint64_t> keys;
};

/// Exact repeats of prompts, least recently used out first, bounded by bytes. Two prompts whose 64-bit hashes
/// meet would share an entry, which costs a poor choice of engine and nothing else. For one thread.
class key_cache {
 public:
  explicit key_cache(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  /// Valid until the next put(); null if unknown.
  const prompt_keys* get(std::uint64_t prompt_hash, std::uint32_t block_size);
  void put(std::uint64_t prompt_hash, std::uint32_t block_size, prompt_keys value);

  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const { return entries_.size(); }

 private:
  struct entry {
    std::uint64_t hash;
    prompt_keys value;
  };
  static std::uint64_t mixed(std::uint64_t prompt_hash, std::uint32_t block_size);
  static std::uint64_t cost(const prompt_keys& value);

  std::uint64_t max_bytes_;
  std::uint64_t bytes_ = 0;
  std::list<entry> entries_;
  std::unordered_map<std::uint64_t, std::list<entry>::iterator> by_hash_;
};

}  // namespace infernex::gateway
