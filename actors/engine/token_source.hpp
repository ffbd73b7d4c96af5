#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infernex::engine {

/// Where an engine tells a prompt's tokens: vLLM's `/v1/completions/render` and `/v1/chat/completions/render`, or, in
/// older engines, `/tokenize`.
enum class token_endpoint : std::uint8_t { render, tokenize };

enum class prompt_kind : std::uint8_t { completion, chat };

/// A prompt of one text, or of one message of the user.
struct plain_prompt {
  prompt_kind kind = prompt_kind::completion;
  std::string model;
  std::string text;
};

struct http_call {
  std::string path;
  std::string body;
};

/// POST that makes the engine answer the prompt with as many tokens as `max_tokens` says, in one piece.
http_call generate_call(const plain_prompt& prompt, std::uint32_t max_tokens);

/// POST that asks for the prompt's tokens. Render takes the body of a request, tokenize the prompt alone.
http_call token_call(token_endpoint endpoint, const plain_prompt& prompt);

struct token_answer {
  enum class kind : std::uint8_t {
    tokens,
    /// The engine does not have the endpoint (404, 405, 501).
    absent,
    /// It has, but failed, or answered something else than tokens.
    failed,
  };
  kind what = kind::failed;
  std::vector<std::uint32_t> ids;
};

/// Largest answer read, in bytes.
inline constexpr std::size_t max_token_answer_bytes = 16 << 20;

/// Reads `{"token_ids":[…]}`, `[{"token_ids":[…]},…]` (the first counts) or `{"tokens":[…]}`. False, and no ids, if the
/// body is something else.
bool read_token_ids(std::string_view body, std::vector<std::uint32_t>& ids);

token_answer read_token_answer(unsigned status, std::string_view body);

}  // namespace infernex::engine
