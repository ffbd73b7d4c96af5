#include "actors/proxy/request_body.hpp"

#include <algorithm>
#include <array>

#include <simdjson.h>

namespace infernex::proxy {
namespace {

/// Members that are the proxy's alone.
constexpr std::array<std::string_view, 4> ours = {"kv_transfer_params", "bootstrap_host", "bootstrap_port",
                                                  "bootstrap_room"};
/// An answer that must have a form as a whole: an engine that only continues it knows nothing of its beginning.
constexpr std::array<std::string_view, 8> forms = {
    "response_format", "structured_outputs",        "guided_json",   "guided_regex", "guided_choice",
    "guided_grammar",  "guided_whitespace_pattern", "structural_tag"};

error wrong(std::string message) { return {errc::invalid_request, std::move(message)}; }

/// Whether all of it is JSON, and no deeper than max_json_depth.
error check(std::string_view body) {
  thread_local simdjson::dom::parser parser;
  simdjson::dom::element root;
  // allocate() keeps what is large enough; the depth is ours in any case.
  auto failed = simdjson::SUCCESS;
  if (parser.capacity() < body.size() || parser.max_depth() != max_json_depth)
    failed = parser.allocate(std::max<std::size_t>(body.size(), 1 << 16), max_json_depth);
  if (!failed) failed = parser.parse(body.data(), body.size()).get(root);
  if (failed == simdjson::DEPTH_ERROR)
    return wrong("the body is nested deeper than " + std::to_string(max_json_depth) + " levels");
  if (failed) return wrong(std::string("the body is not valid JSON: ") + simdjson::error_message(failed));
  if (!root.is_object()) return wrong("the body must be a JSON object");
  return {};
}

void read_stops(std::string_view value, std::vector<std::string>& into) {
  if (auto one = text_of(value)) {
    if (!one->empty()) into.push_back(*std::move(one));
    return;
  }
  element_cursor walk(value);
  for (std::string_view item; walk.next(item);) {
    if (auto one = text_of(item); one && !one->empty()) into.push_back(*std::move(one));
  }
}

/// What of a completions prompt is text that more text can be put behind.
error read_prompt(std::string_view value, request_facts& into) {
  if (is_string(value)) return {};
  if (!is_array(value)) return wrong("prompt must be a string or an array");
  std::uint32_t count = 0;
  bool numbers = false;
  bool texts = false;
  element_cursor walk(value);
  for (std::string_view item; walk.next(item);) {
    ++count;
    texts = texts || is_string(item);
    numbers = numbers || (!is_string(item) && !is_array(item));
  }
  if (count == 0) return wrong("prompt must not be empty");
  if (!numbers && count > max_prompts) return wrong("more than " + std::to_string(max_prompts) + " prompts");
  into.prompts = numbers ? 1 : count;
  if (!texts || count > 1) into.not_continuable = "its prompt is not one text";
  return {};
}

}  // namespace

result<request_facts> read_request(api kind, std::string_view body) {
  if (auto problem = check(body); problem.code != errc::none) return problem;
  request_facts facts;
  facts.kind = kind;
  std::string_view prompt;
  std::string_view completion_limit;
  member_cursor walk(body);
  for (json_member m; walk.next(m);) {
    const auto& v = m.value;
    if (m.is("stream")) facts.stream = v == "true";
    if (m.is("max_tokens")) facts.max_tokens = count_of(v);
    if (m.is("max_completion_tokens")) completion_limit = v;
    if (m.is("min_tokens")) facts.min_tokens = count_of(v);
    if (m.is("stop")) read_stops(v, facts.stops);
    if (m.is("include_stop_str_in_output")) facts.include_stop = v == "true";
    if (m.is("stream_options")) facts.include_usage = find_value(v, "include_usage") == "true";
    if (m.is("continue_final_message")) facts.continues_last = v == "true";
    if (m.is("n") || m.is("best_of")) {
      if (v != "1" && v != "null") facts.not_continuable = "it asks for several answers";
    }
    if (m.is("echo") && v == "true") facts.not_continuable = "it echoes its prompt";
    if (m.is("logprobs") && v != "null" && v != "false" && (kind == api::completions || !facts.stream))
      facts.not_continuable = "it asks for log probabilities";
    if (m.is("suffix") && v != "null") facts.not_continuable = "it has a suffix";
    const bool formed = std::any_of(forms.begin(), forms.end(), [&](auto name) { return m.is(name); });
    if (formed && v != "null" && find_value(v, "type") != "\"text\"")
      facts.not_continuable = "its answer must have a form as a whole";
    if (m.is(kind == api::chat ? "messages" : "prompt")) prompt = v;
  }
  if (const auto limit = count_of(completion_limit)) {
    facts.has_max_completion_tokens = true;
    facts.max_tokens = limit;
  }
  if (prompt.empty()) return wrong(std::string(kind == api::chat ? "messages" : "prompt") + " is missing");
  if (kind == api::chat && (!is_array(prompt) || first_element(prompt).empty()))
    return wrong("messages must be an array, and not empty");
  if (kind == api::completions) {
    if (auto problem = read_prompt(prompt, facts); problem.code != errc::none) return problem;
  }
  return facts;
}

namespace {

/// An edit for every member that is the proxy's alone, unless `more` sets it.
std::vector<json_edit> without_ours(std::span<const json_edit> more) {
  std::vector<json_edit> edits(more.begin(), more.end());
  for (const auto name : ours) {
    if (std::none_of(more.begin(), more.end(), [name](const json_edit& e) { return e.name == name; }))
      edits.push_back({name, {}});
  }
  return edits;
}

}  // namespace

std::string prefill_body(const request_facts& facts, std::string_view body, std::span<const json_edit> more) {
  std::vector<json_edit> edits{{"stream", "false"}, {"max_tokens", "1"}, {"stream_options", {}}};
  // Where the client wrote it, it would win over max_tokens.
  if (facts.has_max_completion_tokens) edits.push_back({"max_completion_tokens", "1"});
  if (std::none_of(more.begin(), more.end(), [](const json_edit& e) { return e.name == "min_tokens"; }))
    edits.push_back({"min_tokens", {}});
  edits.insert(edits.end(), more.begin(), more.end());
  return edited(body, without_ours(edits)).value_or(std::string());
}

std::string decode_body(std::string_view body, std::span<const json_edit> more) {
  return edited(body, without_ours(more)).value_or(std::string());
}

std::string plain_body(std::string_view body) { return decode_body(body, {}); }

}  // namespace infernex::proxy
