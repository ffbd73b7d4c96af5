#include "actors/engine/block_key.hpp"

#include <algorithm>
#include <string>

#include <xxhash.h>

namespace infernex::engine {

namespace {

block_key never_zero(std::uint64_t hash) { return hash == 0 ? 1 : hash; }

/// Length before text, so that no two roots can spell the same bytes.
void append(std::string& bytes, std::string_view part) {
  const auto size = static_cast<std::uint32_t>(part.size());
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(size >> shift);
  bytes += part;
}

}  // namespace

block_key root_key(const key_root& root) {
  std::string bytes = "infernex-token-v1";
  append(bytes, root.model);
  append(bytes, root.adapter);
  append(bytes, root.salt);
  append(bytes, std::to_string(root.block_size));
  return never_zero(XXH3_64bits(bytes.data(), bytes.size()));
}

block_key next_key(block_key parent, std::span<const std::uint32_t> tokens) {
  return never_zero(XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), parent));
}

block_key with_extra(block_key parent, std::string_view extra) {
  return extra.empty() ? parent : XXH3_64bits_withSeed(extra.data(), extra.size(), parent);
}

std::vector<block_key> chain_keys(const key_root& root, std::span<const std::uint32_t> tokens, std::size_t limit) {
  const auto blocks = std::min(tokens.size() / root.block_size, limit);
  std::vector<block_key> keys;
  keys.reserve(blocks);
  block_key parent = root_key(root);
  for (std::size_t i = 0; i < blocks; ++i) {
    parent = next_key(parent, tokens.subspan(i * root.block_size, root.block_size));
    keys.push_back(parent);
  }
  return keys;
}

}  // namespace infernex::engine
