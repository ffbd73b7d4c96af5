#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "gateway/waiter.hpp"
#include "tests/component/runtime/http_fixture.hpp"

namespace infernex::test {

/// An engine by its HTTP interface, with an answer to order.
class fake_engine {
 public:
  enum class behaviour {
    whole,
    stream,
    hang,
    hang_after_head,
    slow_stream,
    die_in_stream,
    die_before_event,
    loading,
    bad_request
  };

  explicit fake_engine(std::string name, unsigned prompt_tokens = 33)
      : name_(std::move(name)),
        prompt_tokens_(prompt_tokens),
        server_(
            [this](http::worker& on, http::request& in, http::responder& out) { return serve(*this, on, in, out); }) {}

  const std::string& name() const { return name_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.server->port()); }

  std::atomic<behaviour> answers{behaviour::whole};
  std::atomic<bool> has_render{true};
  std::atomic<bool> has_tokenize{true};
  std::atomic<bool> render_hangs{false};
  std::atomic<unsigned> renders{0}, tokenizes{0}, chats{0}, left_by_client{0};
  /// Head of the last completions request as `name: value` lines, its target and its body.
  std::string last_seen() {
    const std::lock_guard lock(guard_);
    return seen_;
  }

 private:
  static http::task<void> serve(fake_engine& e, http::worker& on, http::request& in, http::responder& out);
  static http::task<void> wait_for_leaving(fake_engine& e, http::worker& on, http::responder& out);
  http::task<void> send_tokens(http::responder& out, const char* field);

  std::string name_;
  unsigned prompt_tokens_;
  std::mutex guard_;
  std::string seen_;
  http_fixture server_;
};

inline const std::string event_role = R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})"
                                      "\n\n";
inline const std::string event_text = R"(data: {"choices":[{"index":0,"delta":{"content":"hi"}}]})"
                                      "\n\n";
inline const std::string event_usage =
    R"(data: {"choices":[],"usage":{"prompt_tokens":33,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":32}}})"
    "\n\n";
inline const std::string event_done = "data: [DONE]\n\n";

inline http::task<void> fake_engine::send_tokens(http::responder& out, const char* field) {
  std::string ids;
  for (unsigned i = 0; i < prompt_tokens_; ++i) ids += (i ? "," : "") + std::to_string(i);
  const auto body = std::string("{\"") + field + "\":[" + ids + "]}";
  co_await out.send(200, "application/json", body);
}

inline http::task<void> fake_engine::wait_for_leaving(fake_engine& e, http::worker& on, http::responder& out) {
  gateway::waiter gone(on.context());
  out.on_client_gone([&gone] { gone.cancel(); });
  const auto outcome = co_await gone.wait(std::chrono::steady_clock::now() + 30s);
  out.on_client_gone({});
  if (outcome == gateway::waiter::outcome::cancelled) ++e.left_by_client;
}

inline http::task<void> fake_engine::serve(fake_engine& e, http::worker& on, http::request& in, http::responder& out) {
  const auto not_found = http::openai_error(404, "no such path");
  if (in.path.ends_with("/render")) {
    ++e.renders;
    if (e.render_hangs) co_return co_await wait_for_leaving(e, on, out);
    if (e.has_render) co_return co_await e.send_tokens(out, "token_ids");
    co_await out.send(404, "application/json", not_found);
    co_return;
  }
  if (in.path == "/tokenize") {
    ++e.tokenizes;
    if (e.has_tokenize) co_return co_await e.send_tokens(out, "tokens");
    co_await out.send(404, "application/json", not_found);
    co_return;
  }
  ++e.chats;
  {
    const std::lock_guard lock(e.guard_);
    e.seen_ = in.method + " " + in.target + "\n";
    for (const auto& f : in.headers) e.seen_ += f.name + ": " + f.value + "\n";
    e.seen_ += in.body;
  }
  const auto how = e.answers.load();
  if (how == behaviour::whole) {
    const auto body = R"({"id":"x","engine":")" + e.name_ +
                      R"(","choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":33,"completion_tokens":1,)"
                      R"("prompt_tokens_details":{"cached_tokens":32}}})";
    http::fields extra;
    extra.push_back({"x-engine-header", "kept"});
    co_await out.send(200, "application/json", body, std::move(extra));
  } else if (how == behaviour::loading) {
    co_await out.send(503, "application/json", "{\"error\":{\"message\":\"loading\"}}");
  } else if (how == behaviour::bad_request) {
    co_await out.send(400, "application/json", "{\"error\":{\"message\":\"the engine's own words\"}}");
  } else if (how == behaviour::hang) {
    co_await wait_for_leaving(e, on, out);
  } else {
    if (!co_await out.start_stream(200, "text/event-stream; charset=utf-8")) co_return;
    if (how == behaviour::die_before_event) co_return out.abort();
    if (!co_await out.write(event_role + event_text)) co_return;
    if (how == behaviour::die_in_stream) {
      co_await out.write("data: {\"choices\":[{\"index\":0,\"del");
      co_return out.abort();
    }
    if (how == behaviour::hang_after_head) co_return co_await wait_for_leaving(e, on, out);
    if (how == behaviour::slow_stream) {
      gateway::waiter decoding(on.context());
      co_await decoding.wait(std::chrono::steady_clock::now() + 300ms);
    }
    if (!co_await out.write(event_usage + event_done)) co_return;
    co_await out.end_stream();
  }
}

}  // namespace infernex::test
