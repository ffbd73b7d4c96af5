#include "gateway/endpoints.hpp"

#include <algorithm>
#include <array>

#include "actors/runtime/http/admin.hpp"
#include "gateway/json_text.hpp"
#include "gateway/session.hpp"

namespace infernex::gateway {
namespace {

http::task<void> chat(hand& at, http::request& in, http::responder& out) {
  co_await serve_completion(at, api::chat, "/v1/chat/completions", in, out);
}

http::task<void> completions(hand& at, http::request& in, http::responder& out) {
  co_await serve_completion(at, api::completions, "/v1/completions", in, out);
}

/// One entry of OpenAI's list shape, with the fields vLLM adds.
std::string model_entry(std::string_view id, std::string_view parent, const router::model_endpoints& model,
                        std::uint64_t created) {
  std::optional<std::uint32_t> longest;
  for (const auto& e : model.endpoints) {
    if (e.max_model_len) longest = std::min(longest.value_or(*e.max_model_len), *e.max_model_len);
  }
  return "{\"id\":" + json_text(id) + ",\"object\":\"model\",\"created\":" + std::to_string(created) +
         ",\"owned_by\":\"infernex\",\"root\":" + json_text(parent.empty() ? id : parent) +
         ",\"parent\":" + (parent.empty() ? "null" : json_text(parent)) +
         ",\"max_model_len\":" + (longest ? std::to_string(*longest) : "null") + "}";
}

http::task<void> models(hand& at, http::request&, http::responder& out) {
  const auto topology = at.topology();
  const auto created = at.shared.process.epoch / 1'000'000'000;
  std::string list;
  if (topology) {
    for (const auto& [name, model] : topology->models) {
      if (!list.empty()) list += ',';
      list += model_entry(name, {}, model, created);
      std::vector<std::string> adapters;
      for (const auto& e : model.endpoints) adapters.insert(adapters.end(), e.adapters.begin(), e.adapters.end());
      std::sort(adapters.begin(), adapters.end());
      adapters.erase(std::unique(adapters.begin(), adapters.end()), adapters.end());
      for (const auto& adapter : adapters) (list += ',') += model_entry(adapter, name, model, created);
    }
  }
  const auto body = "{\"object\":\"list\",\"data\":[" + list + "]}";
  co_await out.send(200, "application/json", body);
}

/// Ready when a chat request would succeed. A missing router is no hindrance: the gateway then decides by
/// load, which the answer's header shows.
bool ready(hand& at) {
  const auto topology = at.topology();
  return topology && std::any_of(topology->models.begin(), topology->models.end(),
                                 [](const auto& model) { return model.second.ready_count() > 0; });
}

http::task<void> admin(hand& at, http::request& in, http::responder& out) {
  const std::function<bool()> is_ready = [&at] { return ready(at); };
  co_await http::answer_admin(at.shared.process.metrics, is_ready, in, out);
}

http::task<void> metaserver(hand& at, http::request& in, http::responder& out) {
  if (const auto& pairs = at.shared.facts->pairs) co_return co_await pairs->serve_metaserver(at.worker, in, out);
  const auto nothing = unknown_path(in.method, in.path);
  co_await send_answer(out, nothing);
}

http::task<void> refuse(http::responder& out, answer what, http::fields extra) {
  co_await send_answer(out, what, std::move(extra));
}

struct endpoint_entry {
  /// Empty: the function looks at the method itself.
  std::string_view method;
  std::string_view path;
  http::task<void> (*serve)(hand&, http::request&, http::responder&);
};

/// The last two are hermes-router's: the spelling its document of v25.09 has, and the right one.
constexpr std::array<endpoint_entry, 9> entries = {{
    {"POST", "/v1/chat/completions", chat},
    {"POST", "/v1/completions", completions},
    {"GET", "/v1/models", models},
    {"POST", "/v1/metaserver", metaserver},
    {"", "/healthz", admin},
    {"", "/readyz", admin},
    {"", "/metrics", admin},
    {"POST", "/rest/hermes-router/v1beta1/v1/chat/completons", chat},
    {"POST", "/rest/hermes-router/v1beta1/v1/chat/completions", chat},
}};

}  // namespace

http::task<void> dispatch(hand& at, http::request& in, http::responder& out) {
  for (const auto& e : entries) {
    if (e.path != in.path) continue;
    if (e.method.empty() || e.method == in.method) return e.serve(at, in, out);
    return refuse(out, wrong_method(in.method, in.path, e.method), {{"Allow", std::string(e.method)}});
  }
  return refuse(out, unknown_path(in.method, in.path), {});
}

}  // namespace infernex::gateway
