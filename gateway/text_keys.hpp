#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "actors/router/prediction.hpp"
#include "gateway/openai_request.hpp"

namespace infernex::gateway {

/// Bytes of a prompt's text behind one key: about router::text_block_tokens at four bytes a token.
inline constexpr std::size_t text_piece_bytes = std::size_t{4} * router::text_block_tokens;

/// What the first piece of a text depends on besides its bytes.
struct text_root {
  std::string_view model;
  std::string_view adapter;
  std::string_view salt;
  api kind = api::chat;
  /// Fields that the engine renders into the prompt ahead of its text (tools, chat_template, …).
  std::span<const raw_field> rendering;
};

/// Keys of a prompt whose tokens are not known: 64-bit XXH3 hashes of its pieces as they were sent, chained from the
/// start, so that equal keys mean equal beginnings. Never equal to keys of tokens, but by chance. Of the pieces that
/// may be cached (all but the last byte's), at most `limit`.
std::vector<std::uint64_t> text_keys(const text_root& root, std::string_view prompt, std::size_t limit);

}  // namespace infernex::gateway
