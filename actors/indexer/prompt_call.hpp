#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/match_question.hpp"

namespace infernex::indexer {

/// Ways to the tokens of a prompt, in the order in which they are tried: vLLM's render endpoints, and `/tokenize` of
/// engines too old to have them.
enum class prompt_step : std::uint8_t { render, tokenize };
std::string_view name(prompt_step step);

/// Where and how an engine is asked for the tokens of a question's prompt or messages.
std::string prompt_body(const match_question& question);
std::string prompt_path(prompt_step step, const match_question& question);

/// What an engine answered. `absent`: it lacks the endpoint (404, 405, 501), or failed (408, 429, 5xx, no tokens): the
/// next step or engine may do better; `denied`: it refused the credentials it was sent (401, 403): another engine may
/// not; `refused`: it found the prompt itself wrong (any other 4xx), and `message` says why.
struct prompt_answer {
  enum class verdict : std::uint8_t { tokens, absent, denied, refused } outcome = verdict::absent;
  std::vector<std::uint32_t> ids;
  std::string message;
};

/// Shapes: `{"token_ids":[…]}`, `[{"token_ids":[…]},…]` (the first counts), `{"tokens":[…]}`.
prompt_answer read_prompt_answer(unsigned status, std::string_view body);

}  // namespace infernex::indexer
