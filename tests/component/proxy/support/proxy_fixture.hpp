#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "actors/proxy/proxy.hpp"
#include "actors/runtime/bus.hpp"
#include "actors/runtime/caf.hpp"
#include "actors/runtime/metrics.hpp"
#include "tests/component/proxy/support/fake_pd_engine.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex::test {

/// A proxy on a real bus with two prefill and two decode engines, listed or announced.
class proxy_fixture {
 public:
  explicit proxy_fixture(fb::KvProtocol protocol, proxy::settings how = {}, bool listed = true)
      : protocol_(protocol), clients_(1) {
    bus_settings to;
    to.url = nats.url();
    bus_ = connect(to);
    outside = connect(to);
    process_.emplace(runtime{system_, *bus_, metrics, "test-1", 42, {}});
    how.port = 0;
    how.threads = 2;
    how.probe_interval = 20ms;
    how.group.name = "g";
    if (listed) how.group.protocol = protocol;
    for (int i = 0; i < 2; ++i) {
      prefill.push_back(std::make_unique<fake_pd_engine>(true));
      decode.push_back(std::make_unique<fake_pd_engine>(false));
      if (!listed) continue;
      how.group.prefill.push_back(prefill.back()->address());
      how.group.decode.push_back(decode.back()->address());
    }
    auto started = proxy::start(*process_, how);
    REQUIRE_MESSAGE(started.ok(), (started ? std::string{} : render(started.failure())));
    role = *std::move(started);
    REQUIRE(eventually([&] {
      // As agents do, again and again: the proxy's subscription may not be there yet.
      if (!listed) announce();
      return metric("infernex_proxy_ready_engines{role=\"prefill\"}") == 2 &&
             metric("infernex_proxy_ready_engines{role=\"decode\"}") == 2;
    }));
  }
  ~proxy_fixture() {
    role->stop(5s);
    role.reset();
  }

  /// All engines, as their agents would; each is its own bootstrap endpoint.
  void announce() {
    for (const auto* side : {&prefill, &decode}) {
      for (const auto& e : *side) {
        fb::EngineAnnounceT a;
        a.origin = std::make_unique<fb::OriginT>();
        a.origin->id = "agent/" + e->address();
        a.origin->epoch = 1;
        a.origin->sequence = ++sequence_;
        a.model = "m";
        a.instance = e->address();
        a.url = "http://" + e->address();
        a.role = side == &prefill ? fb::EngineRole::Prefill : fb::EngineRole::Decode;
        a.state = fb::EngineState::Ready;
        a.pd_group = "g";
        a.kv_transfer = std::make_unique<fb::KvTransferT>();
        a.kv_transfer->protocol = protocol_;
        a.kv_transfer->bootstrap_port = e->port();
        REQUIRE(outside->publish(outside->names().announce("m", a.instance), encode(a), lane::rpc) == errc::none);
      }
    }
  }
  http::response call(std::string method, std::string target, std::string body = {}, http::fields headers = {}) {
    auto answer = run(clients_.at(0), fetch(clients_.at(0), {"127.0.0.1", role->port()}, std::move(method),
                                            std::move(target), std::move(body), std::move(headers)));
    REQUIRE_MESSAGE(answer.ok(), (answer ? std::string{} : render(answer.failure())));
    return *std::move(answer);
  }
  /// First prefill and first decode engine, so that a test knows which ones must fail.
  http::fields first_pair() const {
    return {{"x-prefiller-host-port", prefill[0]->address() + "," + prefill[1]->address()},
            {"x-decoder-host-port", decode[0]->address() + "," + decode[1]->address()}};
  }
  http::response chat(bool stream, const std::string& more = {}) {
    return call("POST", "/v1/chat/completions", body(stream, more), first_pair());
  }
  static std::string body(bool stream, const std::string& more = {}) {
    return R"({"model":"m","messages":[{"role":"user","content":"count"}],"max_tokens":9)" +
           std::string(stream ? R"(,"stream":true,"stream_options":{"include_usage":true})" : "") + more + "}";
  }
  /// A client that leaves: while the engines hang, or in mid-stream.
  void leave(bool in_mid_stream) {
    auto client = raw_socket::connect(role->port());
    const auto text = body(true, in_mid_stream ? R"(,"user":"go slowly")" : "");
    const auto head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-prefiller-host-port: " + prefill[0]->address() +
        "\r\nx-decoder-host-port: " + decode[0]->address() + "\r\nContent-Length: " + std::to_string(text.size()) +
        "\r\n\r\n";
    REQUIRE(client.send(head + text));
    if (in_mid_stream) CHECK(client.read_until("one ").find("one ") != std::string::npos);
    if (!in_mid_stream) CHECK(eventually([&] { return !all_quiet(); }));
    client.close();
    CHECK(eventually([&] { return all_quiet(); }));
    CHECK(eventually([&] { return metric("infernex_proxy_requests_total{outcome=\"client_gone\"}") == 1; }));
  }
  double metric(const std::string& line_start) {
    const auto page = "\n" + call("GET", "/metrics").body;
    const auto at = page.find("\n" + line_start);
    return at == std::string::npos ? 0 : std::stod(page.substr(page.find(' ', at + line_start.size())));
  }
  /// No engine has a request any more.
  bool all_quiet() {
    for (const auto* side : {&prefill, &decode}) {
      for (const auto& e : *side) {
        if (e->open != 0) return false;
      }
    }
    return true;
  }

  metrics_registry metrics;
  nats_server nats;
  std::unique_ptr<bus> outside;
  std::vector<std::unique_ptr<fake_pd_engine>> prefill, decode;
  std::unique_ptr<proxy::proxy_role> role;

 private:
  std::unique_ptr<bus> connect(const bus_settings& to) {
    auto connected = bus::connect(to, metrics);
    REQUIRE(connected.ok());
    return *std::move(connected);
  }
  static http::task<result<http::response>> fetch(http::worker& on, http::origin to, std::string method,
                                                  std::string target, std::string body, http::fields headers) {
    const http::outgoing what{method, target, std::move(headers), body};
    http::call_options options;
    options.response_timeout = options.idle_timeout = 15s;
    co_return co_await on.upstream().fetch(to, what, options);
  }

  fb::KvProtocol protocol_;
  std::uint64_t sequence_ = 0;
  std::unique_ptr<bus> bus_;
  actor_config config_;
  caf::actor_system system_{config_};
  std::optional<runtime> process_;
  http::io_threads clients_;
};

/// The text of a streamed answer, and how often something is in it.
inline std::string text_of_stream(const std::string& events) {
  std::string all;
  for (std::size_t at = 0; (at = events.find("\"content\":\"", at)) != std::string::npos;) {
    at += 11;
    all += events.substr(at, events.find('"', at) - at);
  }
  return all;
}
inline std::size_t count_of(const std::string& in, std::string_view what) {
  std::size_t n = 0;
  for (auto at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++n;
  return n;
}

}  // namespace infernex::test
