#include <array>

#include "actors/proxy/hand.hpp"
#include "actors/runtime/http/admin.hpp"

namespace infernex::proxy {
namespace {

http::task<void> chat(hand& at, http::request& in, http::responder& out) {
  co_await serve_completion(at, api::chat, in, out);
}

http::task<void> completions(hand& at, http::request& in, http::responder& out) {
  co_await serve_completion(at, api::completions, in, out);
}

http::task<void> meta(hand& at, http::request& in, http::responder& out) {
  const auto& how = at.shared.how.exchange;
  co_await at.shared.meta.serve(at.worker, in, out, how.prefill_timeout + how.connect_timeout);
}

http::task<void> metrics(hand& at, http::request&, http::responder& out) {
  const auto engines = co_await scrape_group(at);
  const auto page = at.shared.process.metrics.render() + engines;
  co_await out.send(200, "text/plain; version=0.0.4; charset=utf-8", page);
}

/// When a request would be answered, be it by a decode engine alone.
bool ready(hand& at) {
  const auto view = at.view();
  return view->usable(fb::EngineRole::Decode) > 0 &&
         (view->usable(fb::EngineRole::Prefill) > 0 || at.shared.how.exchange.tries.local_prefill);
}

http::task<void> health(hand& at, http::request& in, http::responder& out) {
  const std::function<bool()> is_ready = [&at] { return ready(at); };
  co_await http::answer_admin(at.shared.process.metrics, is_ready, in, out);
}

struct endpoint_entry {
  std::string_view method;
  std::string_view path;
  http::task<void> (*serve)(hand&, http::request&, http::responder&);
};

constexpr std::array<endpoint_entry, 10> entries = {{
    {"POST", "/v1/chat/completions", chat},
    {"POST", "/v1/completions", completions},
    {"POST", "/v1/metaserver", meta},
    {"GET", "/v1/models", serve_models},
    {"GET", "/healthcheck", serve_healthcheck},
    {"POST", "/instances/add", serve_add},
    {"POST", "/instances/remove", serve_remove},
    {"GET", "/metrics", metrics},
    {"GET", "/healthz", health},
    {"GET", "/readyz", health},
}};

}  // namespace

http::task<void> dispatch(hand& at, http::request& in, http::responder& out) {
  for (const auto& e : entries) {
    if (e.path != in.path) continue;
    if (e.method == in.method) return e.serve(at, in, out);
    return send_error(out, 405, std::string(e.path) + " takes " + std::string(e.method) + " only.",
                      "method_not_allowed");
  }
  return send_error(out, 404, "There is no such path here.", "not_found");
}

}  // namespace infernex::proxy
