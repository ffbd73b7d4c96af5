#include "gateway/token_chain.hpp"

#include "gateway/json_text.hpp"

namespace infernex::gateway {

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
