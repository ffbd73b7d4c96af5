#pragma once

#include <algorithm>
#include <vector>

#include "actors/engine/mirror.hpp"

namespace infernex::test {

using namespace infernex::engine;

inline constexpr std::uint32_t block_size = 4;
inline const mirror_settings small{"m", std::nullopt, 1000, 100};

/// `count` blocks after `parent` whose tokens start at `token`; hashes are first_hash, first_hash + 1, …
inline stored_blocks stored(std::uint64_t first_hash, std::optional<std::uint64_t> parent, std::uint32_t token,
                            std::size_t count) {
  stored_blocks blocks;
  blocks.parent = parent;
  blocks.block_size = block_size;
  for (std::size_t i = 0; i < count; ++i) blocks.hashes.push_back(first_hash + i);
  for (std::uint32_t i = 0; i < count * block_size; ++i) blocks.tokens.push_back(token + i);
  return blocks;
}

inline std::vector<block_key> keys_of(std::uint32_t token, std::size_t count, std::string_view adapter = {},
                                      std::string_view salt = {}) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < count * block_size; ++i) tokens.push_back(token + i);
  return chain_keys({"m", adapter, salt, block_size}, tokens, count);
}

inline std::vector<block_key> sorted(std::vector<block_key> keys) {
  std::ranges::sort(keys);
  return keys;
}

inline std::vector<block_key> held(const mirror& m, fb::KvTier tier = fb::KvTier::Device) {
  for (auto& [each, keys] : m.all_keys())
    if (each == tier) return keys;
  return {};
}

inline stored_blocks offloaded(std::vector<std::uint64_t> hashes, fb::KvTier tier) {
  stored_blocks blocks;  // as engines announce it: no tokens
  blocks.hashes = std::move(hashes);
  blocks.tier = tier;
  return blocks;
}

inline std::uint64_t xor_of(const std::vector<block_key>& keys) {
  std::uint64_t digest = 0;
  for (const auto key : keys) digest ^= key;
  return digest;
}

}  // namespace infernex::test
