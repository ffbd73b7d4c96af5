#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/engine_directory.hpp"
#include "actors/indexer/request_body.hpp"

namespace infernex::indexer {

/// `POST /match_sort`: which engine caches how much of a prompt? docs/indexer-api.md has the fields.
struct match_question {
  enum class form : std::uint8_t { tokens, keys, prompt, messages };

  std::string model;
  std::string tenant;
  /// Name in the index, see index_name().
  std::string index;
  std::string adapter;
  std::string salt;
  form by = form::tokens;
  std::vector<std::uint32_t> token_ids;
  /// Our own block keys, as a router has them; `several`: the answer is a list too.
  request_body::hash_lists chains;
  /// Tokens a block, where the caller says.
  std::optional<std::uint32_t> block_size;
  /// Instances in the answer; unset: all.
  std::optional<std::uint32_t> top;
  bool explain = false;
  /// What an engine is to render: the body less `model` and the fields that are ours. A JSON object.
  std::string to_render;
};

/// Chains in one request.
inline constexpr std::size_t max_chains = 4'096;

/// Nothing: `into` is complete.
std::optional<refusal> read_match_question(std::string_view body, match_question& into);

/// Replaces the name of an adapter in `model` by that of its base model, as OpenAI's clients name adapters; and
/// chooses the block size: the model's own where it is known, else the caller's. Refused: no engine of the model is
/// known, no block size is.
std::optional<refusal> settle_names(match_question& question, const engine_list& engines);

/// Keys of the leading blocks of a prompt. `every_block`: also a last full block, which an engine computes again
/// nevertheless if the prompt ends with it. Precondition: block_size is known.
std::vector<block_key> keys_of(const match_question& question, std::span<const std::uint32_t> tokens, bool every_block);

}  // namespace infernex::indexer
