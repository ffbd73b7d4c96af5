#include "actors/simulator/openai_request.hpp"

#include <algorithm>
#include <utility>

#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>

#include "actors/simulator/json_fields.hpp"
#include "actors/simulator/kv_transfer_params.hpp"
#include "actors/simulator/openai_prompt.hpp"

namespace infernex::simulator {

namespace json = boost::json;

namespace {

/// Completions that set no max_tokens, as in OpenAI's API.
constexpr std::uint32_t completion_max_tokens = 16;

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

/// A prefill for SGLang is sent the client's own body.
void read_transfer(json_fields& fields, const json::object& body, const settings& engine, completion_request& request) {
  auto outcome = parse_transfers(body, engine.kv_transfer, request.prompts.size());
  if (const auto* problem = std::get_if<refusal>(&outcome))
    return fields.refuse(problem->param, problem->message, problem->status);
  auto& each = std::get<std::vector<kv_transfer_request>>(outcome);
  if (each.empty()) return;
  request.transfer = std::move(each.front());
  request.more_transfers.assign(std::make_move_iterator(each.begin() + 1), std::make_move_iterator(each.end()));
  const bool gives = request.transfer.what == kv_transfer_request::part::give;
  if (!gives || !request.transfer.awaited) return;
  if (engine.kv_transfer.protocol == transfer_protocol::sglang) request.max_tokens.assign(request.prompts.size(), 1);
  request.ignore_eos = true;
  request.stops.clear();
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
  read_transfer(fields, body, engine, request);
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
  read_transfer(fields, body, engine, request);
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
