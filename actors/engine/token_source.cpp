#include "actors/engine/token_source.hpp"

#include <limits>

#include <boost/json.hpp>
#include <simdjson.h>

namespace infernex::engine {

namespace {

namespace json = boost::json;
namespace od = simdjson::ondemand;

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

bool read_list(od::object& holder, std::vector<std::uint32_t>& ids) {
  od::array items;
  if (holder.find_field_unordered("token_ids").get_array().get(items) &&
      holder.find_field_unordered("tokens").get_array().get(items))
    return false;
  for (auto item : items) {
    std::uint64_t id = 0;
    if (item.get_uint64().get(id) || id > std::numeric_limits<std::uint32_t>::max()) return false;
    ids.push_back(static_cast<std::uint32_t>(id));
  }
  return true;
}

}  // namespace

http_call generate_call(const plain_prompt& prompt, std::uint32_t max_tokens) {
  return {path_of(prompt.kind), json::serialize(request_of(prompt, max_tokens))};
}

http_call token_call(token_endpoint endpoint, const plain_prompt& prompt) {
  if (endpoint == token_endpoint::tokenize) return {"/tokenize", json::serialize(body_of(prompt))};
  return {path_of(prompt.kind) + "/render", json::serialize(request_of(prompt, 1))};
}

bool read_token_ids(std::string_view body, std::vector<std::uint32_t>& ids) {
  ids.clear();
  if (body.size() > max_token_answer_bytes) return false;
  const simdjson::padded_string padded(body);
  od::parser parser;
  od::document document;
  od::object holder;
  if (parser.iterate(padded).get(document)) return false;
  od::json_type type;
  if (document.type().get(type)) return false;
  bool read = false;
  if (type == od::json_type::object) {
    read = !document.get_object().get(holder) && read_list(holder, ids);
  } else if (type == od::json_type::array) {
    for (auto first : document.get_array()) {
      read = !first.get_object().get(holder) && read_list(holder, ids);
      break;
    }
  }
  if (!read) ids.clear();
  return read;
}

token_answer read_token_answer(unsigned status, std::string_view body) {
  using kind = token_answer::kind;
  if (status == 404 || status == 405 || status == 501) return {kind::absent, {}};
  token_answer answer;
  if (status == 200 && read_token_ids(body, answer.ids)) answer.what = kind::tokens;
  return answer;
}

}  // namespace infernex::engine
