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

/// What an engine's answer to such a call means to whoever asked.
enum class token_verdict : std::uint8_t {
  tokens,
  /// The engine does not have the endpoint (404, 405, 501).
  absent,
  /// It has, but failed or is busy (408, 429, 5xx, any other status), or answered something else than tokens.
  failed,
  /// It refused the credentials it was sent (401, 403); another engine may not.
  denied,
  /// It found the prompt itself wrong (any other 4xx): no other endpoint or engine would do better.
  refused,
};

struct token_answer {
  token_verdict verdict = token_verdict::failed;
  /// Empty but for `tokens`.
  std::vector<std::uint32_t> ids;
};

/// Largest answer read, in bytes.
inline constexpr std::size_t max_token_answer_bytes = 16 << 20;

/// Reads an answer: tokens are `{"token_ids":[…]}`, `[{"token_ids":[…]},…]` (the first counts) or `{"tokens":[…]}`.
token_answer read_token_answer(unsigned status, std::string_view body);

}  // namespace infernex::engine
