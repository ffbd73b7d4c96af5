#include <boost/asio/post.hpp>

#include "actors/proxy/exchange_run.hpp"
#include "actors/proxy/hand.hpp"

namespace infernex::proxy {
namespace {

constexpr std::size_t max_models_answer = 4 << 20;
constexpr std::chrono::milliseconds look_again{50};

/// `{"type":"prefill"|"decode","instances":["host:port",…]}`, as vllm-ascend's proxy takes it.
struct instances_body {
  fb::EngineRole role = fb::EngineRole::Prefill;
  std::vector<std::string> engines;
};
result<instances_body> read_instances(std::string_view body) {
  const auto wrong = [](std::string why) { return error{errc::invalid_request, std::move(why)}; };
  const auto type = text_of(find_value(body, "type")).value_or("");
  if (type != "prefill" && type != "decode") return wrong("type must be prefill or decode");
  instances_body read;
  if (type == "decode") read.role = fb::EngineRole::Decode;
  const auto list = find_value(body, "instances");
  const auto take = [&](std::string_view item) {
    auto address = text_of(item);
    auto checked = address ? address_of(*address) : result<std::string>(wrong("instances must be texts `host:port`"));
    if (!checked) return checked.failure();
    read.engines.push_back(*std::move(checked));
    return error{};
  };
  // vllm-ascend's proxy takes a single one as it is.
  if (is_string(list)) {
    if (auto problem = take(list); problem.code != errc::none) return problem;
  }
  element_cursor walk(list);
  for (std::string_view item; walk.next(item);) {
    if (auto problem = take(item); problem.code != errc::none) return problem;
  }
  if (read.engines.empty()) return wrong("instances must be a list of `host:port`, and not empty");
  return read;
}

std::string listed(const std::vector<std::string>& addresses) {
  std::string out = "[";
  for (const auto& a : addresses) {
    if (out.size() > 1) out += ',';
    out += quoted(a);
  }
  return out += ']';
}

std::string group_json(const group_view& view, std::string_view message) {
  return "{\"message\":" + quoted(message) +
         ",\"current_prefill_instances\":" + listed(view.addresses(fb::EngineRole::Prefill)) +
         ",\"current_decode_instances\":" + listed(view.addresses(fb::EngineRole::Decode)) + "}";
}

struct pending_change {
  bool done = false;
  error problem;
};

/// Has the actor change the group, and waits for its word.
http::task<error> change(hand& at, fb::PdAction action, instances_body what) {
  auto state = std::make_shared<pending_change>();
  group_change order;
  order.action = action;
  order.role = what.role;
  order.engines = std::move(what.engines);
  order.done = [state, &context = at.worker.context()](error problem) {
    http::asio::post(context, [state, problem = std::move(problem)] {
      state->problem = problem;
      state->done = true;
    });
  };
  at.shared.actor.send(std::make_shared<const group_change>(std::move(order)));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  http::waiter pause(at.worker.context());
  while (!state->done) {
    const auto now = std::chrono::steady_clock::now();
    if (now > until) co_return error{errc::timed_out, "the group's actor does not answer"};
    co_await pause.wait(now + std::chrono::milliseconds(1));
  }
  co_return state->problem;
}

unsigned status_of(errc code) {
  if (code == errc::not_found) return 404;
  return code == errc::overloaded ? 429 : code == errc::timed_out ? 504 : 400;
}

}  // namespace

http::task<void> serve_models(hand& at, http::request& in, http::responder& out) {
  const auto view = at.view();
  // For all of it: a client waits no longer for many engines that hang than for two.
  const auto call = std::make_shared<leg_call>(at.worker);
  expire_after(call, 2 * at.shared.how.probe_timeout);
  http::call_options options;
  options.connect_timeout = at.shared.how.exchange.connect_timeout;
  options.response_timeout = options.idle_timeout = at.shared.how.probe_timeout;
  options.cancel = &call->cancel;
  const http::outgoing what{"GET", in.target, {}, {}};
  for (const auto& m : view->members) {
    const auto to = http::parse_url(m.engine.url);
    if (!m.usable() || !to) continue;
    if (call->too_late) break;
    const auto answer = co_await at.worker.upstream().fetch(to->at, what, options, max_models_answer);
    if (!answer || answer->status != 200) continue;
    call->deadline.cancel();
    co_await out.send(200, "application/json", answer->body);
    co_return;
  }
  call->deadline.cancel();
  co_await send_error(out, 503, "No engine of the group could say which models it serves.", "no_engine_ready");
}

http::task<void> serve_healthcheck(hand& at, http::request&, http::responder& out) {
  const auto view = at.view();
  const auto body =
      "{\"status\":\"ok\",\"prefill_instances\":" + std::to_string(view->addresses(fb::EngineRole::Prefill).size()) +
      ",\"decode_instances\":" + std::to_string(view->addresses(fb::EngineRole::Decode).size()) + "}";
  co_await out.send(200, "application/json", body);
}

http::task<void> serve_add(hand& at, http::request& in, http::responder& out) {
  auto what = read_instances(in.body);
  if (!what) co_return co_await send_error(out, 400, what.failure().detail, "invalid_request");
  const auto problem = co_await change(at, fb::PdAction::Add, *what);
  if (problem.code != errc::none)
    co_return co_await send_error(out, status_of(problem.code), problem.detail, std::string(name(problem.code)));
  const auto until = std::chrono::steady_clock::now() + at.shared.how.add_timeout;
  http::waiter pause(at.worker.context());
  out.on_client_gone([&pause] { pause.cancel(); });
  std::string waiting_for;
  for (;;) {
    waiting_for.clear();
    const auto view = at.view();
    for (const auto& address : what->engines) {
      const auto* m = view->find(what->role, address);
      if (!m || !m->usable()) waiting_for = address;
    }
    const auto now = std::chrono::steady_clock::now();
    if (waiting_for.empty() || now >= until || out.client_gone()) break;
    co_await pause.wait(now + look_again);
  }
  out.on_client_gone({});
  if (!waiting_for.empty())
    co_return co_await send_error(out, 504, waiting_for + " is in the group, but not healthy yet; it is waited for.",
                                  "not_healthy");
  const auto body = group_json(*at.view(), "added");
  co_await out.send(200, "application/json", body);
}

http::task<void> serve_remove(hand& at, http::request& in, http::responder& out) {
  auto what = read_instances(in.body);
  if (!what) co_return co_await send_error(out, 400, what.failure().detail, "invalid_request");
  const auto problem = co_await change(at, fb::PdAction::Remove, *what);
  if (problem.code != errc::none)
    co_return co_await send_error(out, status_of(problem.code), problem.detail, std::string(name(problem.code)));
  const auto body = group_json(*at.view(), "removed as soon as their requests have ended");
  co_await out.send(200, "application/json", body);
}

}  // namespace infernex::proxy
