#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "actors/indexer/kv_index.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// A request as far as placing it goes. Points into the caller's memory.
struct placement {
  std::string_view request_id;
  std::string_view adapter;
  fb::KeyMode key_mode = fb::KeyMode::Text;
  std::optional<std::uint32_t> prompt_tokens;
  std::uint32_t prompt_bytes = 0;
  std::uint32_t block_size = 0;
  /// Number of cacheable blocks (the length of the key chain).
  std::uint32_t blocks = 0;
  std::span<const std::string_view> exclude;
  /// The key chain itself; may be empty though `blocks` is not, where only its length is known.
  std::span<const std::uint64_t> keys = {};
  std::optional<std::uint32_t> max_tokens = {};
  /// Whom the request's share of the fleet is counted for; empty: nobody in particular.
  std::string_view tenant = {};
  /// Higher goes first; below zero may be shed.
  std::int32_t priority = 0;
  /// Request headers that plugins may look at, names in lower case.
  std::span<const std::pair<std::string_view, std::string_view>> headers = {};

  /// Empty if there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return {};
  }
  /// Prompt tokens; without a count, four bytes a token: the usual mean of English text in current vocabularies.
  std::uint64_t tokens() const { return prompt_tokens ? *prompt_tokens : prompt_bytes / 4; }
  /// KV blocks the prompt takes. Its answer is not counted: how long it will be is not known.
  std::uint64_t prompt_blocks() const { return block_size == 0 ? 0 : (tokens() + block_size - 1) / block_size; }
  /// Tokens an engine that caches so many leading blocks will have to prefill, as far as known.
  std::uint64_t uncached_tokens(std::uint32_t cached_blocks) const {
    const auto cached = std::uint64_t{cached_blocks} * block_size;
    const auto prompt = tokens();
    return cached >= prompt ? 0 : prompt - cached;
  }
};

/// Leading blocks of the request that an instance caches, or should cache.
using overlap = indexer::match;

/// What the KV index said, or why it said nothing; and what is predicted of what was routed lately.
struct overlaps {
  bool known = false;
  /// Why not, e.g. "the indexer did not answer in 50 ms". Empty if known.
  std::string_view unknown_because;
  std::span<const overlap> found;
  std::span<const overlap> predicted;
};

}  // namespace infernex::router
