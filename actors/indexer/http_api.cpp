#include "actors/indexer/http_api.hpp"

#include <algorithm>
#include <array>

#include "actors/runtime/http/admin.hpp"

namespace infernex::indexer {
namespace {

http::task<void> serve_sources(api_call& call) {
  const auto body = to_json(*call.at.page(), std::chrono::steady_clock::now());
  co_await answer_json(call.out, body);
}

/// 200 once this replica is to be asked (readiness) and the bus is there; the body says why, or why not.
http::task<void> serve_ready(api_call& call) {
  const auto page = call.at.page();
  const bool connected = call.at.connected();
  const bool ready = connected && page->caught_up;
  const auto body = (ready ? "ok: " : "not ready: ") + (connected ? page->caught_up_because : "the bus is down") + "\n";
  co_await call.out.send(ready ? 200 : 503, "text/plain; charset=utf-8", body);
}

struct endpoint {
  std::string_view path;
  std::string_view method;
  http::task<void> (*serve)(api_call&);
};

constexpr std::array endpoints{
    endpoint{"/match_sort", "POST", serve_match_sort},
    endpoint{"/register", "POST", serve_register},
    endpoint{"/unregister", "POST", serve_unregister},
    endpoint{"/query", "POST", serve_query},
    endpoint{"/query_by_hash", "POST", serve_query_by_hash},
    endpoint{"/dump", "GET", serve_dump},
    endpoint{"/sources", "GET", serve_sources},
    endpoint{"/v1/index", "GET", serve_sources},
    endpoint{"/readyz", "GET", serve_ready},
};

}  // namespace

std::shared_ptr<const index_page> api_context::page() {
  static const auto none = [] {
    auto empty = std::make_shared<index_page>();
    empty->engines = std::make_shared<const engine_list>();
    empty->caught_up_because = "starting";
    return std::shared_ptr<const index_page>(std::move(empty));
  }();
  const auto& newest = pages.shared();
  return newest ? newest : none;
}

std::span<const match> look_up(api_call& call, const std::string& index, std::span<const block_key> chain) {
  const auto began = std::chrono::steady_clock::now();
  const auto found = call.at.lookups.lookup(index, chain);
  call.at.facts->metrics.lookup_seconds.Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return found.value_or(std::span<const match>{});
}

http::task<void> answer_json(http::responder& out, std::string body) {
  co_await out.send(200, "application/json", body);
}

http::task<void> refuse(http::responder& out, refusal why) {
  const auto body = http::openai_error(why.status, why.message, why.code, why.param);
  co_await out.send(why.status, "application/json", body);
}

http::task<void> serve_api(std::shared_ptr<api_context> at, http::worker& worker, const http::request& in,
                           http::responder& out) {
  static const std::function<bool()> always;  // /readyz is answered above
  api_call call{*at, worker, in, out, in.received_at + at->how.request_timeout};
  const auto* found = std::ranges::find(endpoints, in.path, &endpoint::path);
  const auto method = in.method == "HEAD" ? std::string_view("GET") : std::string_view(in.method);
  if (found != endpoints.end() && found->method == method) {
    co_await found->serve(call);
  } else if (found != endpoints.end()) {
    const auto body =
        http::openai_error(405, in.path + " answers " + std::string(found->method) + " only", "method_not_allowed");
    http::fields allow;
    allow.push_back({"Allow", std::string(found->method)});
    co_await out.send(405, "application/json", body, std::move(allow));
  } else if (!co_await http::answer_admin(at->metrics, always, in, out)) {
    std::string known = "/metrics and /healthz";
    for (const auto& one : endpoints) known = std::string(one.path) + ", " + known;
    const auto body = http::openai_error(404, "there is no " + in.path + " here, only " + known);
    co_await out.send(404, "application/json", body);
  }
}

}  // namespace infernex::indexer
