#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/engine/token_source.hpp"
#include "actors/indexer/match_question.hpp"

namespace infernex::indexer {

/// Ways to the tokens of a prompt, in the order in which they are tried: vLLM's render endpoints, and `/tokenize` of
/// engines too old to have them.
enum class prompt_step : std::uint8_t { render, tokenize };
std::string_view name(prompt_step step);

/// Where and how an engine is asked for the tokens of a question's prompt or messages.
std::string prompt_body(const match_question& question);
std::string prompt_path(prompt_step step, const match_question& question);

/// What an engine answered; of a refusal, `message` says why.
struct prompt_answer : engine::token_answer {
  std::string message;
};
prompt_answer read_prompt_answer(unsigned status, std::string_view body);

}  // namespace infernex::indexer
