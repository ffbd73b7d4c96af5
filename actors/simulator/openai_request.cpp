#include "actors/simulator/openai_request.hpp"

#include <algorithm>
#include <utility>

#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>

#include "actors/simulator/json_fields.hpp"

namespace infernex::simulator {

namespace json = boost::json;

namespace {

/// Completions that set no max_tokens, as in OpenAI's API.
constexpr std::uint32_t completion_max_tokens = 16;

std::string joined_parts(json_fields& fields, const json::array& parts, const std::string& where) {
  std::string text;
  bool first = true;
  for (const auto& entry : parts) {
    const auto* part = entry.if_object();
    if (!part) {
      fields.refuse_type(where, "a list of content parts", entry);
      return {};
    }
    json_fields inner(*part);
    const auto type = inner.text("type").value_or("");
    const auto content = inner.text("text");
    if (type != "text" || !content) {
      fields.refuse(where, where + ": the model takes parts of type \"text\" only, got \"" + type + "\".");
      return {};
    }
    if (!std::exchange(first, false)) text += '\n';
    text += *content;
  }
  return text;
}

std::vector<chat_message> read_messages(json_fields& fields) {
  std::vector<chat_message> messages;
  const auto* value = fields.find("messages");
  const auto* list = value ? value->if_array() : nullptr;
  if (!list) {
    if (value) fields.refuse_type("messages", "an array", *value);
    fields.refuse("messages", "messages is required.");
    return {};
  }
  if (list->empty()) fields.refuse("messages", "messages must hold at least one message.");
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto where = "messages[" + std::to_string(i) + "]";
    const auto* object = (*list)[i].if_object();
    if (!object) {
      fields.refuse_type(where, "an object", (*list)[i]);
      return {};
    }
    json_fields inner(*object);
    chat_message message;
    message.role = inner.text("role").value_or("");
    if (message.role.empty()) fields.refuse(where + ".role", where + ".role: expected a string.");
    if (const auto* content = inner.find("content")) {
      if (const auto* text = content->if_string()) {
        message.content.assign(text->data(), text->size());
      } else if (const auto* parts = content->if_array()) {
        message.content = joined_parts(fields, *parts, where + ".content");
      } else {
        fields.refuse_type(where + ".content", "a string or an array", *content);
      }
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

template_options read_template_options(json_fields& fields) {
  template_options options;
  options.add_generation_prompt = fields.boolean("add_generation_prompt").value_or(true);
  options.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  if (options.add_generation_prompt && options.continue_final_message) {
    fields.refuse("continue_final_message",
                  "continue_final_message and add_generation_prompt cannot both be true: set add_generation_prompt to "
                  "false.");
  }
  return options;
}

std::vector<token_id> tokens_of(json_fields& fields, std::string_view name, std::string_view text) {
  auto tokens = encode(text);
  if (tokens) return std::move(*tokens);
  fields.refuse(name, std::string(name) + ": " + tokens.failure().detail + ".");
  return {};
}

std::vector<token_id> tokens_of(json_fields& fields, std::string_view name, const json::array& ids) {
  std::vector<token_id> tokens;
  std::string scratch;
  tokens.reserve(ids.size());
  for (const auto& entry : ids) {
    const auto* id = entry.if_int64();
    scratch.clear();
    if (!id || *id < 0 || *id >= eos_token || !append_text(static_cast<token_id>(*id), scratch)) {
      fields.refuse(name, std::string(name) + ": not a token id of this model: " + json::serialize(entry) + ".");
      return {};
    }
    tokens.push_back(static_cast<token_id>(*id));
  }
  return tokens;
}

/// A text, a list of texts, a list of ids, or a list of lists of ids.
std::vector<std::vector<token_id>> read_prompts(json_fields& fields) {
  const auto* value = fields.find("prompt");
  if (!value) {
    fields.refuse("prompt", "prompt is required.");
    return {};
  }
  if (const auto* text = value->if_string())
    return {tokens_of(fields, "prompt", std::string_view(text->data(), text->size()))};
  const auto* list = value->if_array();
  if (!list) {
    fields.refuse_type("prompt", "a string, a list of strings or token ids", *value);
    return {};
  }
  if (!list->empty() && list->front().is_int64()) return {tokens_of(fields, "prompt", *list)};
  if (list->size() > max_choices) {
    fields.refuse("prompt", "prompt holds more than " + std::to_string(max_choices) + " prompts.");
    return {};
  }
  std::vector<std::vector<token_id>> prompts;
  for (const auto& entry : *list) {
    if (const auto* one = entry.if_string()) {
      prompts.push_back(tokens_of(fields, "prompt", std::string_view(one->data(), one->size())));
    } else if (const auto* ids = entry.if_array()) {
      prompts.push_back(tokens_of(fields, "prompt", *ids));
    } else {
      fields.refuse_type("prompt", "a list of strings or of lists of token ids", entry);
      return {};
    }
  }
  if (prompts.empty()) fields.refuse("prompt", "prompt is empty.");
  return prompts;
}

void read_model(json_fields& fields, const settings& engine, std::string& model) {
  model = fields.text("model").value_or(served_name(engine));
  if (!serves(engine, model)) fields.refuse("model", "The model `" + model + "` does not exist.", 404);
}

void read_sampling(json_fields& fields, completion_request& request) {
  request.n = static_cast<std::uint32_t>(fields.integer("n", 1, max_choices).value_or(1));
  request.min_tokens = static_cast<std::uint32_t>(fields.integer("min_tokens").value_or(0));
  request.stops = fields.texts("stop", max_stop_strings);
  if (std::find(request.stops.begin(), request.stops.end(), "") != request.stops.end()) {
    fields.refuse("stop", "stop holds an empty string.");
  }
  request.keep_stop = fields.boolean("include_stop_str_in_output").value_or(false);
  request.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  request.stream = fields.boolean("stream").value_or(false);
  request.seed = fields.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  request.cache_salt = fields.text("cache_salt").value_or("");
  request.request_id = fields.text("request_id").value_or("");
  // Checked as vLLM checks them; a simulated answer does not depend on them.
  fields.number("temperature", 0, 2);
  fields.number("top_p", 0, 1);
  fields.number("presence_penalty", -2, 2);
  fields.number("frequency_penalty", -2, 2);
  if (const auto* value = fields.find("stream_options")) {
    if (const auto* options = value->if_object()) {
      json_fields inner(*options);
      request.include_usage = inner.boolean("include_usage").value_or(false);
      if (inner.problem()) fields.refuse("stream_options", inner.problem()->message);
    } else {
      fields.refuse_type("stream_options", "an object", *value);
    }
    if (!request.stream) fields.refuse("stream_options", "stream_options is allowed only when stream is true.");
  }
}

void resolve_max_tokens(json_fields& fields, const settings& engine, std::optional<std::uint64_t> asked,
                        std::optional<std::uint32_t> fallback, completion_request& request) {
  const std::uint64_t context = context_length(engine);
  for (const auto& prompt : request.prompts) {
    if (prompt.empty()) return fields.refuse(request.chat ? "messages" : "prompt", "The prompt is empty.");
    const std::uint64_t left = prompt.size() < context ? context - prompt.size() : 0;
    if (left == 0 || asked.value_or(0) > left) {
      return fields.refuse(request.chat ? "messages" : "prompt",
                           "This model's maximum context length is " + std::to_string(context) + " tokens, but " +
                               std::to_string(prompt.size() + asked.value_or(1)) + " were requested (" +
                               std::to_string(prompt.size()) + " in the prompt, " + std::to_string(asked.value_or(1)) +
                               " for the answer).");
    }
    const auto chosen = asked.value_or(std::min<std::uint64_t>(left, fallback.value_or(left)));
    request.max_tokens.push_back(static_cast<std::uint32_t>(chosen));
    if (request.min_tokens > chosen) {
      return fields.refuse("min_tokens", "min_tokens is greater than max_tokens (" + std::to_string(chosen) + ").");
    }
  }
  if (request.prompts.size() * request.n > max_choices) {
    fields.refuse("n", "More than " + std::to_string(max_choices) + " answers in one request.");
  }
}

template <class T>
parsed<T> outcome(const json_fields& fields, T&& made) {
  if (fields.problem()) return *fields.problem();
  return std::forward<T>(made);
}

}  // namespace

std::string render(const refusal& problem) {
  const auto* type = problem.status == 404   ? "NotFoundError"
                     : problem.status == 429 ? "RateLimitError"
                     : problem.status >= 500 ? "InternalServerError"
                                             : "BadRequestError";
  json::object inner{{"message", problem.message}, {"type", type}, {"param", nullptr}, {"code", problem.status}};
  if (!problem.param.empty()) inner["param"] = problem.param;
  return json::serialize(json::object{{"error", std::move(inner)}});
}

parsed<json::object> parse_body(std::string_view body) {
  json::error_code failed;
  json::stream_parser parser;
  auto used = parser.write_some(body.data(), body.size(), failed);
  if (!failed && used < body.size() && body.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    failed = json::error::extra_data;
  }
  if (!failed) parser.finish(failed);
  if (failed) {
    return refusal{
        400, "The body is not valid JSON: " + failed.message() + " at byte " + std::to_string(used) + ".", {}};
  }
  auto value = parser.release();
  if (auto* object = value.if_object()) return std::move(*object);
  return refusal{400, "The body is not a JSON object.", {}};
}

parsed<completion_request> parse_chat(const json::object& body, const settings& engine) {
  json_fields fields(body);
  completion_request request;
  request.chat = true;
  read_model(fields, engine, request.model);
  const auto messages = read_messages(fields);
  const auto options = read_template_options(fields);
  read_sampling(fields, request);
  const auto asked = fields.integer("max_completion_tokens", 1);
  const auto asked_too = fields.integer("max_tokens", 1);
  if (fields.problem()) return *fields.problem();
  request.prompts.push_back(tokens_of(fields, "messages", render_prompt(messages, options)));
  request.echo_texts.push_back(text_to_echo(messages, options));
  resolve_max_tokens(fields, engine, asked ? asked : asked_too, engine.default_max_tokens, request);
  return outcome(fields, std::move(request));
}

parsed<completion_request> parse_completion(const json::object& body, const settings& engine) {
  json_fields fields(body);
  completion_request request;
  read_model(fields, engine, request.model);
  request.prompts = read_prompts(fields);
  read_sampling(fields, request);
  request.echo = fields.boolean("echo").value_or(false);
  const auto asked = fields.integer("max_tokens", 1);
  if (fields.problem()) return *fields.problem();
  for (const auto& prompt : request.prompts) request.echo_texts.push_back(*decode(prompt));
  resolve_max_tokens(fields, engine, asked, completion_max_tokens, request);
  return outcome(fields, std::move(request));
}

parsed<tokenize_request> parse_tokenize(const json::object& body, const settings& engine) {
  json_fields fields(body);
  tokenize_request request;
  std::string model;
  read_model(fields, engine, model);
  request.return_token_strings = fields.boolean("return_token_strs").value_or(false);
  if (fields.find("messages")) {
    const auto messages = read_messages(fields);
    const auto options = read_template_options(fields);
    if (!fields.problem()) request.tokens = tokens_of(fields, "messages", render_prompt(messages, options));
  } else if (const auto prompt = fields.text("prompt")) {
    request.tokens = tokens_of(fields, "prompt", *prompt);
  } else {
    fields.refuse("prompt", "prompt or messages is required.");
  }
  return outcome(fields, std::move(request));
}

parsed<std::vector<token_id>> parse_detokenize(const json::object& body, const settings& engine) {
  json_fields fields(body);
  std::string model;
  read_model(fields, engine, model);
  std::vector<token_id> tokens;
  const auto* value = fields.find("tokens");
  if (const auto* ids = value ? value->if_array() : nullptr) {
    tokens = tokens_of(fields, "tokens", *ids);
  } else if (value) {
    fields.refuse_type("tokens", "an array", *value);
  } else {
    fields.refuse("tokens", "tokens is required.");
  }
  return outcome(fields, std::move(tokens));
}

}  // namespace infernex::simulator
