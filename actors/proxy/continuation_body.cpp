// The request with which another engine goes on.

#include <algorithm>
#include <vector>

#include "actors/proxy/continuation.hpp"

namespace infernex::proxy {
namespace {

/// What an engine generates without a limit of the request's (vLLM, completions).
constexpr std::uint64_t default_completion_tokens = 16;

}  // namespace

std::string_view continuation::obstacle() const {
  if (!facts_.not_continuable.empty()) return facts_.not_continuable;
  if (other_output_) return "its answer has a tool call or reasoning in it";
  return {};
}

bool continuation::spent() const {
  if (generated_.empty()) return false;
  const auto limit = facts_.max_tokens                 ? facts_.max_tokens
                     : facts_.kind == api::completions ? std::optional(default_completion_tokens)
                                                       : std::nullopt;
  return limit && tokens() >= *limit;
}

namespace {

/// The messages with generated text as (the end of) an assistant's.
std::optional<std::string> continued_messages(std::string_view messages, bool continues_last,
                                              const std::string& generated) {
  if (!continues_last) return with_appended(messages, "{\"role\":\"assistant\",\"content\":" + quoted(generated) + "}");
  std::string_view last;
  element_cursor walk(messages);
  for (std::string_view item; walk.next(item);) last = item;
  const auto content = find_value(last, "content");
  std::optional<std::string> extended;
  if (const auto before = text_of(content)) {
    extended = quoted(*before + generated);
  } else if (is_array(content)) {
    extended = with_appended(content, "{\"type\":\"text\",\"text\":" + quoted(generated) + "}");
  }
  if (!extended) return std::nullopt;
  const json_edit edit{"content", extended};
  const auto message = edited(last, {&edit, 1});
  return message ? with_last(messages, *message) : std::nullopt;
}

}  // namespace

std::optional<std::string> continuation::next_body(std::string_view original) const {
  if (generated_.empty()) return std::string(original);
  if (!obstacle().empty()) return std::nullopt;
  std::vector<json_edit> edits;
  if (facts_.kind == api::chat) {
    auto messages = continued_messages(find_value(original, "messages"), facts_.continues_last, generated_);
    if (!messages) return std::nullopt;
    edits = {{"messages", std::move(messages)}, {"continue_final_message", "true"}, {"add_generation_prompt", "false"}};
  } else {
    auto prompt = find_value(original, "prompt");
    if (is_array(prompt)) prompt = first_element(prompt);
    const auto before = text_of(prompt);
    if (!before) return std::nullopt;
    edits = {{"prompt", quoted(*before + generated_)}};
  }
  auto limit = facts_.max_tokens;
  if (!limit && facts_.kind == api::completions) limit = default_completion_tokens;
  if (limit) {
    const auto left = std::to_string(*limit - std::min(*limit, tokens()));
    edits.push_back({"max_tokens", facts_.has_max_completion_tokens ? std::nullopt : std::optional(left)});
    if (facts_.has_max_completion_tokens) edits.push_back({"max_completion_tokens", left});
  }
  if (facts_.min_tokens)
    edits.push_back({"min_tokens", std::to_string(*facts_.min_tokens - std::min(*facts_.min_tokens, tokens()))});
  return edited(original, edits);
}

}  // namespace infernex::proxy
