#include <doctest/doctest.h>

#include "actors/runtime/http/io.hpp"
#include "tests/component/runtime/http_fixture.hpp"
#include "tests/support/wait.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

struct gate {
  std::atomic<bool> open{false};
  std::atomic<int> told{0};
};

/// Streams until the gate opens or the client is gone.
http::task<void> stream_until_open(gate& until, http::worker& on, http::responder& out) {
  out.on_client_gone([&until] { ++until.told; });
  co_await out.start_stream(200, "text/plain");
  co_await out.write("begun");
  while (!until.open && !out.client_gone()) {
    http::timer pause(on.context().get_executor(), 2ms);
    co_await pause.async_wait(http::use_task);
  }
  co_await out.end_stream();
}

http::handler streaming(gate& until) {
  return [&until](http::worker& on, http::request&, http::responder& out) { return stream_until_open(until, on, out); };
}

/// Never comes back, whatever happens to the client.
http::task<void> waits_for_ever(std::shared_ptr<int> held, http::worker& on, http::origin upstream,
                                http::responder& out) {
  http::outgoing what;
  what.target = "/";
  const http::call_options options;
  auto opened = co_await on.upstream().open(upstream, what, options);
  co_await out.start_stream(200, "text/plain");
  http::timer never(on.context().get_executor(), http::steady::time_point::max());
  co_await never.async_wait(http::use_task);
  ++*held;
}

/// Holds up its whole thread at /block, so that everything else waits in the kernel.
http::task<void> blocks_thread(std::shared_future<void> until, std::atomic<bool>& blocked, http::request& in,
                               http::responder& out) {
  if (in.path == "/block") {
    blocked = true;
    until.wait();
  }
  co_await out.send(200, "text/plain", in.path);
}

bool refuses(std::uint16_t port) {
  try {
    raw_socket::connect(port);
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

}  // namespace

TEST_CASE("draining closes idle connections at once and accepts no more") {
  http_fixture f(echo, {}, 2);
  auto fresh = f.connect();
  auto used = f.connect();
  used.send(get);
  used.read_response();
  REQUIRE(eventually([&] { return f.server->open_connections() == 2; }));
  const auto begun = std::chrono::steady_clock::now();
  CHECK(f.server->drain(10s));
  CHECK(std::chrono::steady_clock::now() - begun < 1s);
  CHECK(fresh.read_to_end().empty());
  CHECK(used.read_to_end().empty());
  CHECK(refuses(f.server->port()));
  CHECK(f.server->open_connections() == 0);
}

TEST_CASE("draining lets an active stream finish") {
  gate until;
  http_fixture f(streaming(until));
  auto client = f.connect();
  client.send(get);
  CHECK(client.read_until("begun\r\n").ends_with("begun\r\n"));
  auto drained = std::async(std::launch::async, [&] { return f.server->drain(20s); });
  REQUIRE(eventually([&] { return refuses(f.server->port()); }));
  CHECK(f.server->active_requests() == 1);
  until.open = true;
  CHECK(client.read_to_end() == "0\r\n\r\n");
  CHECK(drained.get());
  CHECK(until.told == 0);
}

TEST_CASE("draining waits for a request that is still arriving, and answers it as the connection's last") {
  http_fixture f(echo);
  auto client = f.connect();
  client.send("POST /late HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  client.read_until("\r\n\r\n");
  auto drained = std::async(std::launch::async, [&] { return f.server->drain(20s); });
  REQUIRE(eventually([&] { return refuses(f.server->port()); }));
  client.send("body");
  const auto answer = client.read_to_end();
  CHECK(answer.find("Connection: close\r\n") != std::string::npos);
  CHECK(answer.ends_with("POST /late body"));
  CHECK(drained.get());
}

TEST_CASE("draining answers what had been sent before it, also on connections that were not accepted yet") {
  std::promise<void> until;
  const auto opened = until.get_future().share();
  std::atomic<bool> blocked{false};
  http_fixture f([opened, &blocked](http::worker&, http::request& in, http::responder& out) {
    return blocks_thread(opened, blocked, in, out);
  });
  auto idle = f.connect();
  REQUIRE(eventually([&] { return f.server->open_connections() == 1; }));
  auto blocking = f.connect();
  blocking.send("GET /block HTTP/1.1\r\nHost: x\r\n\r\n");
  REQUIRE(eventually([&] { return blocked.load(); }));
  auto waiting = f.connect();
  waiting.send("GET /waiting HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.send("GET /idle HTTP/1.1\r\nHost: x\r\n\r\n");
  auto drained = std::async(std::launch::async, [&] { return f.server->drain(20s); });
  until.set_value();
  CHECK(blocking.read_to_end().ends_with("/block"));
  CHECK(waiting.read_to_end().ends_with("/waiting"));
  CHECK(idle.read_to_end().ends_with("/idle"));
  CHECK(drained.get());
}

TEST_CASE("draining cancels what does not finish in time, and says so") {
  gate until;
  http_fixture f(streaming(until), {}, 2);
  auto client = f.connect();
  client.send(get);
  client.read_until("begun\r\n");
  CHECK_FALSE(f.server->drain(30ms));
  CHECK(until.told == 1);
  CHECK(client.read_to_end().empty());  // cut off: no last chunk
  CHECK(f.server->active_requests() == 0);
  CHECK(f.server->open_connections() == 0);
}

TEST_CASE("handlers that never return are destroyed with their threads") {
  auto held = std::make_shared<int>(0);
  {
    http_fixture upstream(echo);
    http::io_threads threads(1);
    const http::origin to{"127.0.0.1", upstream.server->port()};
    auto server = http::server::listen(threads, {}, [held, to](http::worker& on, http::request&, http::responder& out) {
      return waits_for_ever(held, on, to, out);
    });
    REQUIRE(server);
    auto client = raw_socket::connect((*server)->port());
    client.send(get);
    CHECK(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
    threads.stop();
    CHECK(held.use_count() > 2);
  }
  CHECK(held.use_count() == 1);
  CHECK(*held == 0);
}

TEST_CASE("a port in use is refused, whoever uses it") {
  http_fixture f(echo);
  const auto again = http::server::listen(f.threads, {.port = f.server->port()}, echo);
  REQUIRE_FALSE(again);
  CHECK(again.failure().code == errc::system_error);
  CHECK(again.failure().detail.find("127.0.0.1:" + std::to_string(f.server->port())) == 0);
  const auto nowhere = http::server::listen(f.threads, {.address = "203.0.113.77"}, echo);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.failure().code == errc::system_error);
}
