#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json/object.hpp>

#include "actors/simulator/chat_template.hpp"
#include "actors/simulator/kv_transfer_request.hpp"
#include "actors/simulator/settings.hpp"
#include "actors/simulator/tokenizer.hpp"

namespace infernex::simulator {

// Bodies of vLLM's OpenAI-compatible API, checked.

/// An answer that says no, in vLLM's shape: `{"error":{"message","type","param","code"}}`.
struct refusal {
  unsigned status = 400;
  std::string message;
  /// The field at fault, if one is.
  std::string param;
};
std::string render(const refusal& problem);

template <class T>
using parsed = std::variant<T, refusal>;

struct completion_request {
  bool chat = false;
  std::string model;
  /// One for a chat; each gets `n` answers.
  std::vector<std::vector<token_id>> prompts;
  /// Per prompt: what echo mode answers, and (completions with `echo`) what the answer starts with.
  std::vector<std::string> echo_texts;
  std::uint32_t n = 1;
  /// Resolved: the request's, the default, or what the context leaves. One a prompt.
  std::vector<std::uint32_t> max_tokens;
  std::uint32_t min_tokens = 0;
  std::vector<std::string> stops;
  bool keep_stop = false;
  bool ignore_eos = false;
  bool stream = false;
  bool include_usage = false;
  /// Completions: the prompt comes first in the answer.
  bool echo = false;
  /// The request's own, replaces the engine's.
  std::optional<std::uint64_t> seed;
  std::string cache_salt;
  /// `request_id` of the body; a header overrides it.
  std::string request_id;
  /// Of the first prompt.
  kv_transfer_request transfer;
  /// Of those behind it; the layer-wise protocol and SGLang have any, the others leave such requests alone.
  std::vector<kv_transfer_request> more_transfers;
};

/// Longest stop list and most answers of one request: over it, 400.
inline constexpr std::size_t max_stop_strings = 64;
inline constexpr std::size_t max_choices = 128;

/// A JSON object, or a 400 that says where the text stops being one.
parsed<boost::json::object> parse_body(std::string_view body);

parsed<completion_request> parse_chat(const boost::json::object& body, const settings& engine);
parsed<completion_request> parse_completion(const boost::json::object& body, const settings& engine);

/// What /tokenize is asked: a prompt, or messages to put through the chat template.
struct tokenize_request {
  std::vector<token_id> tokens;
  bool return_token_strings = false;
};
parsed<tokenize_request> parse_tokenize(const boost::json::object& body, const settings& engine);
parsed<std::vector<token_id>> parse_detokenize(const boost::json::object& body, const settings& engine);

}  // namespace infernex::simulator
