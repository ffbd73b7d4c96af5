#include "actors/engine/token_source.hpp"

#include <limits>

#include <boost/json.hpp>
#include <simdjson.h>

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

token_verdict verdict_of(unsigned status) {
  switch (status) {
    case 200:
      return token_verdict::tokens;
    case 404:
    case 405:
    case 501:
      return token_verdict::absent;
    case 401:
    case 403:
      return token_verdict::denied;
    case 408:
    case 429:
      return token_verdict::failed;
    default:
      return status >= 400 && status < 500 ? token_verdict::refused : token_verdict::failed;
  }
}

bool read_list(simdjson::dom::object holder, std::vector<std::uint32_t>& ids) {
  simdjson::dom::array items;
  if (holder["token_ids"].get(items) && holder["tokens"].get(items)) return false;
  ids.reserve(items.size());
  for (const auto item : items) {
    std::uint64_t id = 0;
    if (item.get(id) || id > std::numeric_limits<std::uint32_t>::max()) return false;
    ids.push_back(static_cast<std::uint32_t>(id));
  }
  return true;
}

/// False, and no ids, if the body is none of the shapes.
bool read_token_ids(std::string_view body, std::vector<std::uint32_t>& ids) {
  ids.clear();
  if (body.size() > max_token_answer_bytes) return false;
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  if (parser.parse(body.data(), body.size()).get(document)) return false;
  simdjson::dom::array several;
  simdjson::dom::object holder;
  const bool found = document.get(several) ? !document.get(holder) : !several.at(0).get(holder);
  if (found && read_list(holder, ids)) return true;
  ids.clear();
  return false;
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
  token_answer answer{verdict_of(status), {}};
  if (answer.verdict == token_verdict::tokens && !read_token_ids(body, answer.ids))
    answer.verdict = token_verdict::failed;
  return answer;
}

}  // namespace infernex::engine
