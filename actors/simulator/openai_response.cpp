#include "actors/simulator/openai_response.hpp"

#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace infernex::simulator {

namespace json = boost::json;

namespace {

std::string text_of(const json::value& value) { return json::serialize(value); }

std::string event_of(const json::value& value) { return "data: " + text_of(value) + "\n\n"; }

json::value reason(const std::optional<finish_reason>& finish) {
  if (!finish) return nullptr;
  return *finish == finish_reason::stop ? "stop" : "length";
}

json::value stop_reason(const std::optional<std::string>& stop_string) {
  return stop_string ? json::value(json::string(*stop_string)) : json::value(nullptr);
}

json::object counts_of(const usage& counts) {
  return {{"prompt_tokens", counts.prompt_tokens},
          {"total_tokens", counts.prompt_tokens + counts.completion_tokens},
          {"completion_tokens", counts.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", counts.cached_tokens}}}};
}

json::array ids_of(std::span<const token_id> tokens) {
  json::array ids;
  ids.reserve(tokens.size());
  for (token_id token : tokens) ids.emplace_back(token);
  return ids;
}

json::object head(std::string_view id, std::string_view object, std::int64_t created, std::string_view model) {
  return {
      {"id", json::string(id)}, {"object", json::string(object)}, {"created", created}, {"model", json::string(model)}};
}

}  // namespace

response_writer::response_writer(bool chat, std::string id, std::string model, std::int64_t created)
    : chat_(chat), id_(std::move(id)), model_(std::move(model)), created_(created) {}

std::string response_writer::whole(std::span<const answer> answers, const usage& counts,
                                   const json::value& kv_transfer_params) const {
  json::array choices;
  for (const auto& each : answers) {
    json::object one{{"index", choices.size()}};
    if (chat_) {
      one["message"] = {{"role", "assistant"},
                        {"content", each.text},
                        {"refusal", nullptr},
                        {"annotations", nullptr},
                        {"audio", nullptr},
                        {"function_call", nullptr},
                        {"tool_calls", json::array()},
                        {"reasoning_content", nullptr}};
    } else {
      one["text"] = each.text;
    }
    one["logprobs"] = nullptr;
    one["finish_reason"] = reason(each.finish);
    one["stop_reason"] = stop_reason(each.stop_string);
    if (!chat_) one["prompt_logprobs"] = nullptr;
    choices.push_back(std::move(one));
  }
  auto body = head(id_, chat_ ? "chat.completion" : "text_completion", created_, model_);
  body["choices"] = std::move(choices);
  body["service_tier"] = nullptr;
  body["system_fingerprint"] = nullptr;
  body["usage"] = counts_of(counts);
  if (chat_) body["prompt_logprobs"] = nullptr;
  body["kv_transfer_params"] = kv_transfer_params;
  return text_of(body);
}

std::string response_writer::role_event(std::uint32_t index) const {
  auto body = head(id_, "chat.completion.chunk", created_, model_);
  body["choices"] = json::array{{{"index", index},
                                 {"delta", {{"role", "assistant"}, {"content", ""}}},
                                 {"logprobs", nullptr},
                                 {"finish_reason", nullptr}}};
  return event_of(body);
}

std::string response_writer::event(std::uint32_t index, const choice::delta& delta) const {
  json::object one{{"index", index}};
  if (chat_) {
    one["delta"] = {{"content", delta.text}};
  } else {
    one["text"] = delta.text;
  }
  one["logprobs"] = nullptr;
  one["finish_reason"] = reason(delta.finish);
  if (!chat_ || delta.finish) one["stop_reason"] = stop_reason(delta.stop_string);
  auto body = head(id_, chat_ ? "chat.completion.chunk" : "text_completion", created_, model_);
  json::array choices;
  choices.push_back(std::move(one));
  body["choices"] = std::move(choices);
  return event_of(body);
}

std::string response_writer::usage_event(const usage& counts) const {
  auto body = head(id_, chat_ ? "chat.completion.chunk" : "text_completion", created_, model_);
  body["choices"] = json::array();
  body["usage"] = counts_of(counts);
  return event_of(body);
}

std::string response_writer::error_event(const refusal& problem) { return "data: " + render(problem) + "\n\n"; }

std::string render_models(const settings& engine, std::int64_t created) {
  auto names = engine.served_model_names;
  if (names.empty()) names.push_back(engine.model);
  json::array data;
  for (const auto& name : names) {
    data.push_back({{"id", name},
                    {"object", "model"},
                    {"created", created},
                    {"owned_by", "vllm"},
                    {"root", engine.model},
                    {"parent", nullptr},
                    {"max_model_len", context_length(engine)}});
  }
  return text_of(json::object{{"object", "list"}, {"data", std::move(data)}});
}

std::string render_tokenized(std::span<const token_id> tokens, bool with_strings, const settings& engine) {
  json::object body{{"count", tokens.size()}, {"max_model_len", context_length(engine)}};
  body["tokens"] = ids_of(tokens);
  body["token_strs"] = nullptr;
  if (with_strings) {
    json::array strings;
    for (token_id token : tokens) {
      std::string text;
      append_text(token, text);
      strings.emplace_back(text);
    }
    body["token_strs"] = std::move(strings);
  }
  return text_of(body);
}

std::string render_detokenized(std::string_view text) { return text_of(json::object{{"prompt", json::string(text)}}); }

std::string render_prompts(bool chat, std::string_view request_id, std::string_view model,
                           const std::vector<std::vector<token_id>>& prompts) {
  json::array rendered;
  for (const auto& prompt : prompts) {
    json::object one{{"request_id", json::string(request_id)}, {"model", json::string(model)}, {"features", nullptr}};
    one["token_ids"] = ids_of(prompt);
    rendered.push_back(std::move(one));
  }
  return chat ? text_of(rendered.front()) : text_of(rendered);
}

std::string render_version(const settings& engine) {
  const auto* version = engine.kv_events.framing == replay_framing::new_5_frames ? "0.26.0"
                        : engine.kv_events.encoding == event_encoding::map       ? "0.25.0"
                                                                                 : "0.23.0";
  return text_of(json::object{{"version", version}});
}

}  // namespace infernex::simulator
