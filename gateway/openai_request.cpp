#include "gateway/openai_request.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <simdjson.h>
#include <xxhash.h>

#include "gateway/json_check.hpp"

namespace infernex::gateway {
namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

/// Parameters of sampling and delivery: they never change a prompt's tokens. Anything not listed may.
constexpr std::array<std::string_view, 30> not_rendering = {"best_of",
                                                            "echo",
                                                            "frequency_penalty",
                                                            "ignore_eos",
                                                            "logit_bias",
                                                            "logprobs",
                                                            "max_tokens",
                                                            "metadata",
                                                            "min_p",
                                                            "max_completion_tokens",
                                                            "min_tokens",
                                                            "n",
                                                            "presence_penalty",
                                                            "priority",
                                                            "prompt_logprobs",
                                                            "parallel_tool_calls",
                                                            "repetition_penalty",
                                                            "request_id",
                                                            "seed",
                                                            "service_tier",
                                                            "stop",
                                                            "stop_token_ids",
                                                            "store",
                                                            "stream",
                                                            "stream_options",
                                                            "temperature",
                                                            "top_k",
                                                            "top_logprobs",
                                                            "top_p",
                                                            "user"};

/// Fields of a chat body that vLLM's /tokenize also takes.
constexpr std::array<std::string_view, 7> rendering_fields = {
    "add_generation_prompt",  "add_special_tokens",  "chat_template", "chat_template_kwargs",
    "continue_final_message", "mm_processor_kwargs", "tools"};

bool changes_tokens(std::string_view name) {
  return std::find(not_rendering.begin(), not_rendering.end(), name) == not_rendering.end();
}

std::string_view trim_end(std::string_view json) {
  const auto last = json.find_last_not_of(" \t\r\n");
  return json.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view prompt_field(api kind) { return kind == api::chat ? "messages" : "prompt"; }

}  // namespace

struct request_scanner::impl {
  od::parser parser;
  od::document document;
  openai_request out;
  bool has_prompt = false;
  std::optional<bad_request> problem;

  bool fail(std::string message, std::string param) {
    problem = bad_request{std::move(message), std::move(param)};
    return false;
  }

  error_code expect_null(od::value value) { return check_json(value, 2, max_depth); }

  error_code read_text(od::value value, od::json_type type, std::string_view name, std::string& to) {
    if (type == od::json_type::null) return expect_null(value);
    if (type != od::json_type::string) {
      fail(std::string(name) + " must be a string", std::string(name));
      return simdjson::INCORRECT_TYPE;
    }
    std::string_view text;
    if (const auto e = value.get_string().get(text)) return e;
    to = text;
    return simdjson::SUCCESS;
  }

  error_code read_flag(od::value value, od::json_type type, std::string_view name, bool& to) {
    if (type == od::json_type::null) return expect_null(value);
    if (type != od::json_type::boolean) {
      fail(std::string(name) + " must be true or false", std::string(name));
      return simdjson::INCORRECT_TYPE;
    }
    return value.get_bool().get(to);
  }

  error_code read_count(od::value value, od::json_type type, std::string_view name, std::uint32_t least,
                        std::uint32_t most, std::optional<std::uint32_t>& to) {
    if (type == od::json_type::null) return expect_null(value);
    std::uint64_t number = 0;
    const bool whole = type == od::json_type::number && value.get_uint64().get(number) == simdjson::SUCCESS;
    if (!whole || number < least || number > most) {
      fail(std::string(name) + " must be an integer between " + std::to_string(least) + " and " + std::to_string(most),
           std::string(name));
      return simdjson::INCORRECT_TYPE;
    }
    to = static_cast<std::uint32_t>(number);
    return simdjson::SUCCESS;
  }

  error_code read_messages(od::value value, od::json_type type) {
    const auto wrong = [this](std::string message) {
      fail(std::move(message), "messages");
      return simdjson::INCORRECT_TYPE;
    };
    if (type != od::json_type::array) return wrong("messages must be an array of objects");
    od::array items;
    if (const auto e = value.get_array().get(items)) return e;
    std::size_t count = 0;
    for (auto item : items) {
      od::value message;
      od::json_type inner;
      if (const auto e = item.get(message)) return e;
      if (const auto e = message.type().get(inner)) return e;
      if (inner != od::json_type::object) return wrong("messages[" + std::to_string(count) + "] must be an object");
      if (const auto e = check_json(message, 3, max_depth)) return e;
      ++count;
    }
    if (count == 0) return wrong("messages must not be empty");
    has_prompt = true;
    return simdjson::SUCCESS;
  }

  error_code wrong_prompt(const char* message =
                              "prompt must be a string, an array of strings, an array of token "
                              "ids, or an array of arrays of token ids") {
    fail(message, "prompt");
    return simdjson::INCORRECT_TYPE;
  }

  /// A token id at `item`, appended to `token_ids` if `keep`.
  error_code read_token(od::value item, bool keep) {
    std::uint64_t id = 0;
    if (item.get_uint64().get(id) != simdjson::SUCCESS || id > std::numeric_limits<std::uint32_t>::max()) {
      return wrong_prompt();
    }
    if (keep) out.token_ids.push_back(static_cast<std::uint32_t>(id));
    return simdjson::SUCCESS;
  }

  error_code read_token_list(od::value item, bool keep) {
    od::array ids;
    if (item.get_array().get(ids) != simdjson::SUCCESS) return wrong_prompt();
    for (auto id : ids) {
      od::value token;
      if (const auto e = id.get(token)) return e;
      if (const auto e = read_token(token, keep)) return e;
    }
    return simdjson::SUCCESS;
  }

  error_code read_prompt(od::value value, od::json_type type) {
    has_prompt = true;
    out.token_ids.clear();
    if (type == od::json_type::string) {
      out.form = prompt_form::text;
      return value.get_string().error();
    }
    if (type != od::json_type::array) return wrong_prompt();
    od::array items;
    if (const auto e = value.get_array().get(items)) return e;
    std::optional<od::json_type> first;
    for (auto item : items) {
      od::value element;
      od::json_type inner;
      if (const auto e = item.get(element)) return e;
      if (const auto e = element.type().get(inner)) return e;
      if (first && *first != inner) return wrong_prompt();
      const bool is_first = !first;
      first = inner;
      if (inner == od::json_type::string) {
        out.form = prompt_form::texts;
        const char* begin = element.raw_json_token().data();
        if (const auto e = element.get_string().error()) return e;
        const char* end = nullptr;
        if (const auto e = document.current_location().get(end)) return e;
        if (is_first) first_prompt = trim_end({begin, static_cast<std::size_t>(end - begin)});
      } else if (inner == od::json_type::number) {
        out.form = prompt_form::tokens;
        if (const auto e = read_token(element, true)) return e;
      } else if (inner == od::json_type::array) {
        out.form = prompt_form::token_lists;
        if (const auto e = read_token_list(element, is_first)) return e;
      } else {
        return wrong_prompt();
      }
    }
    return first ? simdjson::SUCCESS : wrong_prompt("prompt must not be empty");
  }

  error_code read_field(api kind, std::string_view name, od::value value) {
    od::json_type type;
    if (const auto e = value.type().get(type)) return e;
    if (name == "model") return read_text(value, type, name, out.model);
    if (name == "stream") return read_flag(value, type, name, out.stream);
    if (name == "cache_salt") return read_text(value, type, name, out.cache_salt);
    if (name == "max_tokens") return read_count(value, type, name, 0, max_count, max_tokens);
    if (name == "max_completion_tokens") return read_count(value, type, name, 0, max_count, max_completion_tokens);
    if (name == "n") return read_count(value, type, name, 1, 1024, n);
    if (name == "messages" && kind == api::chat) return read_messages(value, type);
    if (name == "prompt" && kind == api::completions) return read_prompt(value, type);
    if (name == "stream_options" && type != od::json_type::object && type != od::json_type::null) {
      fail("stream_options must be an object", "stream_options");
      return simdjson::INCORRECT_TYPE;
    }
    return check_json(value, 2, max_depth);
  }

  static constexpr std::uint32_t max_count = 1U << 30;
  std::optional<std::uint32_t> max_tokens, max_completion_tokens, n;
  std::string_view first_prompt;

  error_code read_fields(api kind) {
    od::object body;
    if (const auto e = document.get_object().get(body)) return e;
    for (auto member : body) {
      od::field field;
      if (const auto e = std::move(member).get(field)) return e;
      std::string_view name;
      if (const auto e = field.unescaped_key().get(name)) return e;
      od::value value = field.value();
      const char* begin = value.raw_json_token().data();
      first_prompt = {};
      if (const auto e = read_field(kind, name, value)) return e;
      const char* end = nullptr;
      if (const auto e = document.current_location().get(end)) return e;
      const auto json = trim_end({begin, static_cast<std::size_t>(end - begin)});
      if (name == prompt_field(kind)) out.prompt = first_prompt.empty() ? json : first_prompt;
      const auto rendering = std::find(rendering_fields.begin(), rendering_fields.end(), name);
      if (rendering != rendering_fields.end()) out.rendering.push_back({*rendering, json});
      if (changes_tokens(name)) {
        out.prompt_hash += XXH3_64bits_withSeed(json.data(), json.size(), XXH3_64bits(name.data(), name.size()));
      }
    }
    // Behind the last brace there must be nothing more to read.
    return document.current_location().error() == simdjson::OUT_OF_BOUNDS ? simdjson::SUCCESS
                                                                          : simdjson::TRAILING_CONTENT;
  }
};

request_scanner::request_scanner() : impl_(std::make_unique<impl>()) {}
request_scanner::~request_scanner() = default;

std::variant<openai_request, bad_request> request_scanner::scan(api kind, std::string& body) {
  auto& s = *impl_;
  s.out = {};
  s.out.prompt_hash = kind == api::chat ? 1 : 2;
  s.problem.reset();
  s.has_prompt = false;
  s.max_tokens = s.max_completion_tokens = s.n = std::nullopt;

  body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
  auto failed = s.parser.iterate(body.data(), body.size(), body.capacity()).get(s.document);
  const bool structure = failed == simdjson::SUCCESS;
  od::json_type root = od::json_type::null;
  if (!failed) failed = s.document.type().get(root);
  if (!failed && root != od::json_type::object) return bad_request{"the body must be a JSON object", {}};
  if (!failed) failed = s.read_fields(kind);
  if (s.problem) return *std::move(s.problem);
  if (failed == simdjson::DEPTH_ERROR) {
    return bad_request{"the body is nested deeper than " + std::to_string(max_depth) + " levels", {}};
  }
  if (failed) {
    std::string message = "the body is not valid JSON: ";
    message += failed == simdjson::EMPTY ? "it is empty" : simdjson::error_message(failed);
    const char* at = nullptr;
    if (structure && s.document.current_location().get(at) == simdjson::SUCCESS && at >= body.data() &&
        at <= body.data() + body.size()) {
      message += " (near byte " + std::to_string(at - body.data()) + ")";
    }
    return bad_request{std::move(message), {}};
  }
  if (s.out.model.empty()) return bad_request{"model is missing", "model"};
  if (!s.has_prompt)
    return bad_request{std::string(prompt_field(kind)) + " is missing", std::string(prompt_field(kind))};
  s.out.max_tokens = s.max_completion_tokens ? s.max_completion_tokens : s.max_tokens;
  s.out.n = s.n.value_or(1);
  return std::move(s.out);
}

}  // namespace infernex::gateway
