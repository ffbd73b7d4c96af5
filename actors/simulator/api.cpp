#include "actors/simulator/api.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "actors/simulator/completion_call.hpp"
#include "actors/simulator/fault_api.hpp"
#include "actors/simulator/openai_request.hpp"
#include "actors/simulator/openai_response.hpp"

namespace infernex::simulator {

namespace {

namespace json = boost::json;

constexpr std::string_view json_type = "application/json";
constexpr std::size_t longest_request_id = 256;

struct exchange {
  engine_api& api;
  http::worker& on;
  const http::request& in;
  http::responder& out;
};
using route_handler = http::task<void> (*)(exchange);

std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

http::task<void> refuse(exchange call, refusal problem) {
  http::fields extra;
  if (problem.status == 429 || problem.status == 503) extra.push_back({"Retry-After", "1"});
  co_await call.out.send(problem.status, json_type, render(problem), std::move(extra));
}

std::string random_id() {
  static constexpr char digits[] = "0123456789abcdef";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id;
  for (int half = 0; half < 2; ++half) {
    auto bits = random();
    for (int i = 0; i < 16; ++i, bits >>= 4) id += digits[bits & 15];
  }
  return id;
}

/// The header's, the body's, or one of our own. A name that could not stand in a header is not used.
std::string request_id(const http::request& in, const std::string& of_body) {
  const auto usable = [](std::string_view id) {
    return !id.empty() && id.size() <= longest_request_id &&
           std::all_of(id.begin(), id.end(), [](char c) { return c > 32 && c < 127; });
  };
  const auto of_header = http::find(in.headers, "x-request-id");
  if (usable(of_header)) return std::string(of_header);
  return usable(of_body) ? of_body : random_id();
}

parsed<completion_request> parse_request(exchange call, bool chat) {
  auto body = parse_body(call.in.body);
  if (auto* problem = std::get_if<refusal>(&body)) return std::move(*problem);
  const auto& object = std::get<json::object>(body);
  return chat ? parse_chat(object, call.api.values) : parse_completion(object, call.api.values);
}

class answering_count {
 public:
  explicit answering_count(engine_api& api) : api_(api) { ++api_.answering; }
  answering_count(const answering_count&) = delete;
  answering_count& operator=(const answering_count&) = delete;
  ~answering_count() { --api_.answering; }

 private:
  engine_api& api_;
};

/// Until the client leaves.
http::task<void> hang(exchange call) {
  transfer_call until_gone(call.on.context());
  call.out.on_client_gone([&until_gone] { until_gone.cancel(); });
  co_await until_gone.pass_until(std::chrono::steady_clock::time_point::max());
}

/// False if the fault lets the request begin.
http::task<bool> struck_at_once(exchange call, const fault_rule& fault) {
  refusal problem{fault.kind == fault_kind::error500 ? 500U : 503U, "A fault on command.", {}};
  switch (fault.kind) {
    case fault_kind::reset:
      call.out.abort();
      co_return true;
    case fault_kind::error500:
    case fault_kind::error503:
      co_await refuse(call, std::move(problem));
      co_return true;
    case fault_kind::hang:
      co_await hang(call);
      co_return true;
    default:
      co_return false;
  }
}

http::task<void> complete(exchange call, bool chat) {
  const answering_count counted(call.api);
  const auto fault = call.api.faults.strike_request();
  if (fault) {
    const bool over = co_await struck_at_once(call, *fault);
    if (over) co_return;
  }
  auto outcome = parse_request(call, chat);
  if (auto* problem = std::get_if<refusal>(&outcome)) {
    co_await refuse(call, std::move(*problem));
    co_return;
  }
  auto& request = std::get<completion_request>(outcome);
  const response_writer writer(chat, (chat ? "chatcmpl-" : "cmpl-") + request_id(call.in, request.request_id),
                               request.model, seconds_since_1970());
  completion_call running(call.api.transfer, call.api.values, std::move(request), writer.id(), fault);
  if (const auto failed = running.start()) {
    auto problem = refusal_of(*failed);
    co_await refuse(call, std::move(problem));
    co_return;
  }
  co_await answer_completion(running, writer, call.out);
  if (const auto* doom = running.doom()) {
    call.out.abort();
    if (doom->kind == fault_kind::die) call.api.on_outage(outage_of(*doom));
  }
}

http::task<void> chat_completions(exchange call) { return complete(call, true); }
http::task<void> completions(exchange call) { return complete(call, false); }

http::task<void> render_request(exchange call, bool chat) {
  auto outcome = parse_request(call, chat);
  if (auto* problem = std::get_if<refusal>(&outcome)) {
    co_await refuse(call, std::move(*problem));
    co_return;
  }
  const auto& request = std::get<completion_request>(outcome);
  const auto id = (chat ? "chatcmpl-" : "cmpl-") + request_id(call.in, request.request_id);
  co_await call.out.send(200, json_type, render_prompts(chat, id, request.model, request.prompts));
}

http::task<void> render_chat(exchange call) { return render_request(call, true); }
http::task<void> render_completion(exchange call) { return render_request(call, false); }

http::task<void> tokenize(exchange call) {
  auto body = parse_body(call.in.body);
  if (auto* problem = std::get_if<refusal>(&body)) co_return co_await refuse(call, std::move(*problem));
  auto outcome = parse_tokenize(std::get<json::object>(body), call.api.values);
  if (auto* problem = std::get_if<refusal>(&outcome)) co_return co_await refuse(call, std::move(*problem));
  const auto& request = std::get<tokenize_request>(outcome);
  co_await call.out.send(200, json_type,
                         render_tokenized(request.tokens, request.return_token_strings, call.api.values));
}

http::task<void> detokenize(exchange call) {
  auto body = parse_body(call.in.body);
  if (auto* problem = std::get_if<refusal>(&body)) co_return co_await refuse(call, std::move(*problem));
  auto outcome = parse_detokenize(std::get<json::object>(body), call.api.values);
  if (auto* problem = std::get_if<refusal>(&outcome)) co_return co_await refuse(call, std::move(*problem));
  const auto text = decode(std::get<std::vector<token_id>>(outcome));
  co_await call.out.send(200, json_type, render_detokenized(*text));
}

http::task<void> models(exchange call) {
  co_await call.out.send(200, json_type, render_models(call.api.values, call.api.started));
}

http::task<void> health(exchange call) { co_await call.out.send(200, json_type, {}); }

http::task<void> version(exchange call) { co_await call.out.send(200, json_type, render_version(call.api.values)); }

http::task<void> metrics(exchange call) {
  co_await call.out.send(200, "text/plain; version=0.0.4; charset=utf-8", call.api.metrics.render());
}

http::task<void> reset_prefix_cache(exchange call) {
  call.api.engine.reset_prefix_cache();
  co_await call.out.send(200, json_type, {});
}

http::task<void> sim_state(exchange call) {
  const auto body = render_state(call.api);
  co_await call.out.send(200, json_type, body);
}

http::task<void> sim_faults(exchange call) {
  const auto body = call.api.faults.render();
  co_await call.out.send(200, json_type, body);
}

http::task<void> arm_fault(exchange call) {
  auto outcome = parse_fault(call.in.body);
  if (auto* problem = std::get_if<refusal>(&outcome)) co_return co_await refuse(call, std::move(*problem));
  const auto& rule = std::get<fault_rule>(outcome);
  const bool taken = rule.at_once() || call.api.faults.arm(rule);
  if (!taken) {
    refusal full{409, "Too many faults are armed.", {}};
    co_return co_await refuse(call, std::move(full));
  }
  if (rule.kind == fault_kind::slow) call.api.engine.slow_down(rule.factor);
  co_await call.out.send(200, json_type, "{}");
  if (rule.kind == fault_kind::refuse || rule.kind == fault_kind::restart) call.api.on_outage(outage_of(rule));
}

http::task<void> clear_faults(exchange call) {
  call.api.faults.clear();
  call.api.engine.slow_down(1);
  co_await call.out.send(200, json_type, "{}");
}

struct route {
  std::string_view method;
  std::string_view path;
  route_handler handler;
  /// Off: 404, as in an engine that does not have it.
  bool settings::*enabled = nullptr;
};

constexpr std::array routes{
    route{"POST", "/v1/chat/completions", chat_completions},
    route{"POST", "/v1/completions", completions},
    route{"POST", "/v1/chat/completions/render", render_chat, &settings::render_endpoints},
    route{"POST", "/v1/completions/render", render_completion, &settings::render_endpoints},
    route{"POST", "/tokenize", tokenize, &settings::tokenize_endpoints},
    route{"POST", "/detokenize", detokenize, &settings::tokenize_endpoints},
    route{"GET", "/v1/models", models},
    route{"GET", "/health", health},
    route{"GET", "/version", version},
    route{"GET", "/metrics", metrics},
    route{"POST", "/reset_prefix_cache", reset_prefix_cache},
    route{"GET", "/sim/state", sim_state, &settings::faults},
    route{"GET", "/sim/faults", sim_faults, &settings::faults},
    route{"POST", "/sim/faults", arm_fault, &settings::faults},
    route{"DELETE", "/sim/faults", clear_faults, &settings::faults},
};

}  // namespace

http::task<void> handle(engine_api& api, http::worker& on, const http::request& in, http::responder& out) {
  const exchange call{api, on, in, out};
  if (std::chrono::steady_clock::now() < api.ready_at) return refuse(call, {503, "The model is still loading.", {}});
  bool path_known = false;
  for (const auto& each : routes) {
    if (each.path != in.path || (each.enabled && !(api.values.*each.enabled))) continue;
    if (each.method == in.method) return each.handler(call);
    path_known = true;
  }
  return refuse(call, path_known ? refusal{405, "Method Not Allowed", {}} : refusal{404, "Not Found", {}});
}

}  // namespace infernex::simulator
