#include "actors/engine/token_source.hpp"

#include <limits>
#include <optional>

#include <boost/json.hpp>

namespace infernex::engine {

namespace {

namespace json = boost::json;

json::object body_of(const plain_prompt& prompt) {
  json::object body{{"model", prompt.model}};
  if (prompt.kind == prompt_kind::completion)
    body["prompt"] = prompt.text;
  else
    body["messages"] = json::array{json::object{{"role", "user"}, {"content", prompt.text}}};
  return body;
}

json::object request_of(const plain_prompt& prompt, std::uint32_t max_tokens) {
  auto body = body_of(prompt);
  body["max_tokens"] = max_tokens;
  body["temperature"] = 0;
  body["stream"] = false;
  return body;
}

std::string path_of(prompt_kind kind) {
  return kind == prompt_kind::completion ? "/v1/completions" : "/v1/chat/completions";
}

std::optional<std::vector<std::uint32_t>> ids_in(const json::value& holder) {
  const auto* object = holder.if_object();
  if (object == nullptr) return std::nullopt;
  const auto* field = object->if_contains("token_ids");
  if (field == nullptr) field = object->if_contains("tokens");
  const auto* list = field == nullptr ? nullptr : field->if_array();
  if (list == nullptr) return std::nullopt;
  std::vector<std::uint32_t> ids;
  ids.reserve(list->size());
  for (const auto& item : *list) {
    const auto* id = item.if_int64();
    if (id == nullptr || *id < 0 || *id > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    ids.push_back(static_cast<std::uint32_t>(*id));
  }
  return ids;
}

}  // namespace

http_call generate_call(const plain_prompt& prompt, std::uint32_t max_tokens) {
  return {path_of(prompt.kind), json::serialize(request_of(prompt, max_tokens))};
}

http_call token_call(token_endpoint endpoint, const plain_prompt& prompt) {
  if (endpoint == token_endpoint::tokenize) return {"/tokenize", json::serialize(body_of(prompt))};
  return {path_of(prompt.kind) + "/render", json::serialize(request_of(prompt, 1))};
}

token_answer read_token_answer(unsigned status, std::string_view body) {
  using kind = token_answer::kind;
  if (status == 404 || status == 405 || status == 501) return {kind::absent, {}};
  if (status != 200 || body.size() > max_token_answer_bytes) return {kind::failed, {}};
  boost::system::error_code problem;
  const auto parsed = json::parse(json::string_view(body.data(), body.size()), problem);
  if (problem) return {kind::failed, {}};
  const auto* several = parsed.if_array();
  if (several != nullptr && several->empty()) return {kind::failed, {}};
  auto ids = ids_in(several == nullptr ? parsed : several->front());
  if (!ids) return {kind::failed, {}};
  return {kind::tokens, *std::move(ids)};
}

}  // namespace infernex::engine
