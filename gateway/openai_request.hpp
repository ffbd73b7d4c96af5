#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace infernex::gateway {

enum class api : std::uint8_t { chat, completions };

/// How the prompt is given: chat messages; one text; several texts; token ids; several lists of token ids.
enum class prompt_form : std::uint8_t { messages, text, texts, tokens, token_lists };

/// A field of the body as it was written: its name, and its value's JSON. Points into the body.
struct raw_field {
  std::string_view name;
  std::string_view json;
};

/// What the gateway must know of a chat or completions body. The body itself goes to the engine unchanged.
struct openai_request {
  std::string model;
  bool stream = false;
  std::optional<std::uint32_t> max_tokens;
  std::uint32_t n = 1;
  std::string cache_salt;
  prompt_form form = prompt_form::messages;
  /// JSON of `messages` or `prompt`; for several prompts, of the first one. Points into the body.
  std::string_view prompt;
  /// Token ids of the (first) prompt where the client sent ids.
  std::vector<std::uint32_t> token_ids;
  /// Fields besides the prompt that change how an engine renders it (tools, chat_template, …).
  std::vector<raw_field> rendering;
  /// Hash over all fields that can change the prompt's tokens or their block keys; equal bodies but for
  /// sampling parameters hash alike, whatever the order of their fields.
  std::uint64_t prompt_hash = 0;
};

/// A mistake of the client: message for people, and the field it is about (empty: the body as a whole).
struct bad_request {
  std::string message;
  std::string param;
};

/// Reads bodies by one pass, checking all of their JSON. Keep one a thread: it owns the parser's memory.
class request_scanner {
 public:
  /// Deepest nesting accepted.
  static constexpr int max_depth = 64;

  request_scanner();
  ~request_scanner();
  /// May reserve capacity behind `body`; its content stays as it is, and the result points into it.
  std::variant<openai_request, bad_request> scan(api kind, std::string& body);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex::gateway
