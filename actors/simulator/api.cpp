#include "actors/simulator/api.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "actors/simulator/completion_call.hpp"
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

http::task<void> complete(exchange call, bool chat) {
  auto outcome = parse_request(call, chat);
  if (auto* problem = std::get_if<refusal>(&outcome)) {
    co_await refuse(call, std::move(*problem));
    co_return;
  }
  auto& request = std::get<completion_request>(outcome);
  const response_writer writer(chat, (chat ? "chatcmpl-" : "cmpl-") + request_id(call.in, request.request_id),
                               request.model, seconds_since_1970());
  completion_call running(call.on.context(), call.api.engine, call.api.values, std::move(request));
  if (const auto failed = running.start()) {
    auto problem = failed->code == errc::overloaded ? refusal{429, "Too many requests are waiting for this engine.", {}}
                                                    : refusal{400, "The request does not fit into this engine.", {}};
    co_await refuse(call, std::move(problem));
    co_return;
  }
  co_await answer_completion(running, writer, call.out);
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
