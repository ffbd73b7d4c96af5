#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace infernex::engine {

/// Our own name for a KV block: a 64-bit XXH3 hash chained over the prompt from its start, so that equal
/// keys mean equal prefixes (but for a chance of about n^2 / 2^65). Never 0. Engines' own block hashes are
/// never used: most engines seed them at random.
using block_key = std::uint64_t;

/// What the first block of a chain depends on besides its tokens. Two requests share keys only if all of
/// it is equal.
struct key_root {
  std::string_view model;
  /// LoRA adapter, empty for the base model.
  std::string_view adapter;
  /// Cache salt of the request, empty for none.
  std::string_view salt;
  std::uint32_t block_size = 0;
};

/// The parent of a chain's first block.
block_key root_key(const key_root& root);

/// The key of the block holding `tokens` whose predecessor has key `parent`.
block_key next_key(block_key parent, std::span<const std::uint32_t> tokens);

/// What to take for `parent` when the block also depends on something else than tokens, an image say: the chain then is
/// one that no plain prompt can name. `extra` empty: the parent itself.
block_key with_extra(block_key parent, std::string_view extra);

/// Keys of the full blocks of `tokens`, at most `limit` of them. Precondition: block_size > 0.
std::vector<block_key> chain_keys(const key_root& root, std::span<const std::uint32_t> tokens, std::size_t limit);

/// How many leading blocks of a prompt an engine can serve from its cache: it always computes the last
/// token, so floor((n - 1) / block_size).
constexpr std::size_t cacheable_blocks(std::size_t prompt_tokens, std::uint32_t block_size) {
  return prompt_tokens == 0 || block_size == 0 ? 0 : (prompt_tokens - 1) / block_size;
}

}  // namespace infernex::engine
