#include "gateway/token_chain.hpp"

#include <limits>

#include <simdjson.h>

#include "gateway/json_text.hpp"

namespace infernex::gateway {
namespace {

namespace od = simdjson::ondemand;

bool read_ids(simdjson::simdjson_result<od::value> field, std::vector<std::uint32_t>& ids) {
  od::array items;
  if (field.get_array().get(items)) return false;
  ids.clear();
  for (auto item : items) {
    std::uint64_t id = 0;
    if (item.get_uint64().get(id) || id > std::numeric_limits<std::uint32_t>::max()) return false;
    ids.push_back(static_cast<std::uint32_t>(id));
  }
  return true;
}

bool read_body(token_step step, std::string_view body, std::vector<std::uint32_t>& ids) {
  const simdjson::padded_string padded(body);
  od::parser parser;
  od::document document;
  if (parser.iterate(padded).get(document)) return false;
  od::json_type type;
  if (document.type().get(type)) return false;
  const char* field = step == token_step::render ? "token_ids" : "tokens";
  if (type == od::json_type::object) return read_ids(document.find_field_unordered(field), ids);
  if (type != od::json_type::array) return false;
  for (auto item : document.get_array()) {
    od::object first;
    if (item.get_object().get(first)) return false;
    return read_ids(first.find_field_unordered(field), ids);
  }
  return false;
}

}  // namespace

std::string_view name(token_step step) {
  switch (step) {
    case token_step::render:
      return "render";
    case token_step::tokenize:
      return "tokenize";
    case token_step::text:
      return "text";
  }
  return "text";
}

token_call make_token_call(token_step step, api kind, const openai_request& request, const token_settings& how) {
  if (step == token_step::render) {
    return {kind == api::chat ? "/v1/chat/completions/render" : "/v1/completions/render", {}, how.render_timeout};
  }
  std::string body = "{\"model\":" + json_text(request.model) + (kind == api::chat ? ",\"messages\":" : ",\"prompt\":");
  body += request.prompt;
  for (const auto& field : request.rendering) {
    ((body += ",\"") += field.name) += "\":";
    body += field.json;
  }
  return {"/tokenize", body += '}', how.tokenize_timeout};
}

token_answer read_token_answer(token_step step, unsigned status, std::string_view body) {
  if (status == 404 || status == 405 || status == 501) return {token_verdict::absent, {}};
  if (status >= 400 && status < 500 && status != 408 && status != 429) return {token_verdict::refused, {}};
  if (status != 200) return {token_verdict::failed, {}};
  token_answer answer;
  if (read_body(step, body, answer.ids)) {
    answer.verdict = token_verdict::tokens;
  } else {
    answer.ids.clear();
  }
  return answer;
}

bool token_endpoints::usable(std::string_view instance, token_step step, clock_point now) const {
  if (until_.empty()) return true;
  const auto found = until_.find({std::string(instance), step});
  return found == until_.end() || now >= found->second;
}

void token_endpoints::avoid(std::string_view instance, token_step step, clock_point until) {
  if (until_.size() >= max_entries_) until_.clear();
  until_[{std::string(instance), step}] = until;
}

std::size_t next_step(const std::vector<token_step>& chain, std::size_t from, std::string_view instance,
                      const token_endpoints& endpoints, clock_point now) {
  while (from < chain.size() && chain[from] != token_step::text && !endpoints.usable(instance, chain[from], now)) {
    ++from;
  }
  return from;
}

}  // namespace infernex::gateway
