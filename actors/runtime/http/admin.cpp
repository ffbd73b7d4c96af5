#include "actors/runtime/http/admin.hpp"

#include "actors/runtime/metrics.hpp"

namespace infernex::http {

namespace {

constexpr std::string_view plain = "text/plain; charset=utf-8";

struct admin {
  const metrics_registry& metrics;
  std::function<bool()> ready;
};

task<void> answer(std::shared_ptr<const admin> state, const request& in, responder& out) {
  if (co_await answer_admin(state->metrics, state->ready, in, out)) co_return;
  const auto body = openai_error(404, "there is no " + in.path + " here, only /metrics, /healthz and /readyz");
  co_await out.send(404, "application/json", body);
}

}  // namespace

task<bool> answer_admin(const metrics_registry& metrics, const std::function<bool()>& ready, const request& in,
                        responder& out) {
  if (in.path != "/metrics" && in.path != "/healthz" && in.path != "/readyz") co_return false;
  if (in.method != "GET" && in.method != "HEAD") {
    const auto body = openai_error(405, in.path + " answers GET only", "method_not_allowed");
    fields allow;
    allow.push_back({"Allow", "GET, HEAD"});
    co_await out.send(405, "application/json", body, std::move(allow));
  } else if (in.path == "/metrics") {
    const std::string page = metrics.render();
    co_await out.send(200, "text/plain; version=0.0.4; charset=utf-8", page);
  } else if (in.path == "/healthz" || !ready || ready()) {
    co_await out.send(200, plain, "ok\n");
  } else {
    co_await out.send(503, plain, "not ready\n");
  }
  co_return true;
}

result<std::unique_ptr<server>> serve_admin(io_threads& threads, server_settings settings,
                                            const metrics_registry& metrics, std::function<bool()> ready) {
  auto state = std::make_shared<const admin>(admin{metrics, std::move(ready)});
  return server::listen(threads, std::move(settings),
                        [state](worker&, request& in, responder& out) { return answer(state, in, out); });
}

}  // namespace infernex::http
