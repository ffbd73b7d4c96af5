#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "actors/proxy/json_scan.hpp"
#include "actors/runtime/http/waiter.hpp"
#include "tests/component/runtime/http_fixture.hpp"

namespace infernex::test {

/// A prefill or decode engine by its HTTP interface: answers prompts with fixed words, and fails to order.
class fake_pd_engine {
 public:
  enum class behaviour { well, error_500, hang, die, die_after_two, recompute_after_two, bad_request };

  explicit fake_pd_engine(bool prefill)
      : prefill_(prefill), server_([this](http::worker& on, http::request& in, http::responder& out) {
          return serve(*this, on, in, out);
        }) {}

  std::string address() const { return "127.0.0.1:" + std::to_string(server_.server->port()); }
  std::uint16_t port() const { return server_.server->port(); }
  void refuse() { server_.server.reset(); }

  std::atomic<behaviour> does{behaviour::well};
  std::atomic<unsigned> asked{0}, left_by_client{0}, bootstraps{0};
  std::atomic<int> open{0};
  std::string engine_id = "e-1";
  /// Bodies of completions requests, in order.
  std::vector<std::string> bodies() {
    const std::lock_guard lock(guard_);
    return bodies_;
  }

  static constexpr const char* words[] = {"one ", "two ", "three ", "four "};

 private:
  static http::task<void> serve(fake_pd_engine& e, http::worker& on, http::request& in, http::responder& out);
  static http::task<void> wait_for_leaving(fake_pd_engine& e, http::worker& on, http::responder& out);
  http::task<bool> prefill_came(http::worker& on, const http::request& in);
  http::task<void> stream(http::worker& on, http::responder& out, std::string body, behaviour how);

  bool prefill_;
  std::mutex guard_;
  std::vector<std::string> bodies_;
  http_fixture server_;
};

inline http::task<void> fake_pd_engine::wait_for_leaving(fake_pd_engine& e, http::worker& on, http::responder& out) {
  http::waiter gone(on.context());
  out.on_client_gone([&gone] { gone.cancel(); });
  const auto how = co_await gone.wait(std::chrono::steady_clock::now() + 30s);
  out.on_client_gone({});
  if (how == http::waiter::outcome::cancelled) ++e.left_by_client;
}

/// Asks the metaserver for the prefill, if the request names one.
inline http::task<bool> fake_pd_engine::prefill_came(http::worker& on, const http::request& in) {
  const auto named = proxy::find_value(proxy::find_value(in.body, "kv_transfer_params"), "metaserver");
  const auto url = http::parse_url(proxy::text_of(named).value_or(""));
  if (named.empty() || !url) co_return named.empty();
  const auto body =
      R"({"token_ids":[],"request_id":"chatcmpl-)" + std::string(http::find(in.headers, "x-request-id")) +
      R"(","do_remote_prefill":false,"do_remote_decode":true,"remote_block_ids":[7],"remote_port":30000})";
  const http::outgoing what{"POST", url->path, {}, body};
  const http::call_options options;
  const auto answer = co_await on.upstream().fetch(url->at, what, options);
  co_return answer && answer->status == 200;
}

/// The words that the conversation has not had, and their usage.
inline http::task<void> fake_pd_engine::stream(http::worker& on, http::responder& out, std::string body,
                                               behaviour how) {
  unsigned first = 0;
  while (first < 4 && body.find(words[first]) != std::string::npos) ++first;
  if (!co_await out.start_stream(200, "text/event-stream")) co_return;
  const auto head = "data: {\"id\":" + proxy::quoted(address()) + ",\"choices\":[";
  const auto role = head + R"({"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]})" + "\n\n";
  if (!co_await out.write(role)) co_return;
  for (unsigned i = first; i < 4; ++i) {
    if (how == behaviour::die_after_two && i == 2) co_return out.abort();
    if (how == behaviour::recompute_after_two && first == 0 && i == 2) {
      const auto back = head + R"({"index":0,"delta":{},"finish_reason":"stop","stop_reason":"recomputed"}]})" +
                        "\n\ndata: [DONE]\n\n";
      if (co_await out.write(back)) co_await out.end_stream();
      co_return;
    }
    const auto event =
        head + R"({"index":0,"delta":{"content":)" + proxy::quoted(words[i]) + R"(},"finish_reason":null}]})" + "\n\n";
    if (!co_await out.write(event)) co_return;
    if (body.find("go slowly") != std::string::npos) co_await wait_for_leaving(*this, on, out);
  }
  const auto end = head + R"({"index":0,"delta":{},"finish_reason":"stop"}]})" + "\n\n" + head +
                   R"(],"usage":{"prompt_tokens":)" + std::to_string(9 + first) + R"(,"completion_tokens":)" +
                   std::to_string(4 - first) + "}}\n\ndata: [DONE]\n\n";
  if (co_await out.write(end)) co_await out.end_stream();
}

inline http::task<void> fake_pd_engine::serve(fake_pd_engine& e, http::worker& on, http::request& in,
                                              http::responder& out) {
  if (in.path == "/health") {
    co_await out.send(200, "text/plain", "ok");
    co_return;
  }
  if (in.path == "/metrics") {
    co_await out.send(200, "text/plain", "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 2\n");
    co_return;
  }
  if (in.path == "/query") {
    ++e.bootstraps;
    const auto ids = R"({"0":{"engine_id":")" + e.engine_id + "\"}}";
    co_await out.send(200, "application/json", ids);
    co_return;
  }
  struct count_open {
    std::atomic<int>& n;
    explicit count_open(std::atomic<int>& of) : n(of) { ++n; }
    ~count_open() { --n; }
  } const counted(e.open);
  {
    const std::lock_guard lock(e.guard_);
    e.bodies_.push_back(in.body);
  }
  ++e.asked;
  const auto how = e.does.load();
  if (how == behaviour::error_500) {
    co_await out.send(500, "application/json", "{}");
  } else if (how == behaviour::bad_request) {
    co_await out.send(400, "application/json", R"({"error":{"message":"the engine's own words"}})");
  } else if (how == behaviour::hang) {
    co_await wait_for_leaving(e, on, out);
  } else if (how == behaviour::die) {
    out.abort();
  } else if (!co_await e.prefill_came(on, in)) {
    co_await out.send(500, "application/json", "{}");
  } else if (!e.prefill_ && proxy::find_value(in.body, "stream") == "true") {
    co_await e.stream(on, out, in.body, how);
  } else {
    const auto answer =
        std::string(R"({"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"one two "},)") +
        R"("finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,)" +
        R"("prompt_tokens_details":{"cached_tokens":)" + (e.prefill_ ? "8" : "0") + "}}" +
        (e.prefill_ ? R"(,"kv_transfer_params":{"do_remote_prefill":true,"remote_engine_id":")" + e.engine_id +
                          R"(","remote_block_ids":[1,2]})"
                    : std::string()) +
        "}";
    co_await out.send(200, "application/json", answer);
  }
}

}  // namespace infernex::test
