#include <doctest/doctest.h>

#include "actors/runtime/http/io.hpp"
#include "tests/component/runtime/http_fixture.hpp"
#include "tests/support/wait.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

http::task<void> three_pieces(http::worker&, http::request&, http::responder& out) {
  CHECK_FALSE(out.started());
  CHECK(co_await out.start_stream(200, "text/event-stream"));
  CHECK(out.started());
  CHECK(co_await out.write("data: 1\n\n"));
  CHECK(co_await out.write(""));
  CHECK(co_await out.write("data: 2\n\n"));
  CHECK(co_await out.end_stream());
  CHECK_FALSE(co_await out.write("late"));
  CHECK_FALSE(co_await out.send(200, "text/plain", "late"));
}

http::task<void> aborts(http::worker&, http::request&, http::responder& out) {
  co_await out.start_stream(200, "text/plain");
  co_await out.write("half");
  out.abort();
}

struct progress {
  std::atomic<std::size_t> written{0};
  std::atomic<bool> refused{false};
};

http::task<void> writes_without_end(progress& seen, http::responder& out) {
  const std::string chunk(64 << 10, 'w');
  co_await out.start_stream(200, "application/octet-stream");
  while (co_await out.write(chunk)) seen.written += chunk.size();
  seen.refused = true;
}

http::handler endless(progress& seen) {
  return [&seen](http::worker&, http::request&, http::responder& out) { return writes_without_end(seen, out); };
}

/// Whether a value stays the same for a while.
bool settles(const std::atomic<std::size_t>& value) {
  std::size_t last = 0;
  int unchanged = 0;
  return eventually([&] {
    const std::size_t now = value;
    unchanged = now == last && now > 0 ? unchanged + 1 : 0;
    last = now;
    return unchanged >= 50;
  });
}

struct watch {
  std::atomic<bool> waiting{false};
  std::atomic<int> told{0};
  std::atomic<bool> seen_gone{false};
  std::atomic<bool> released{false};
};

/// Streams a piece, then waits until the client is gone or the test releases it.
http::task<void> waits(watch& seen, http::worker& on, http::responder& out) {
  http::timer wake(on.context().get_executor());
  out.on_client_gone([&seen, &wake] {
    ++seen.told;
    wake.cancel();
  });
  co_await out.start_stream(200, "text/event-stream");
  co_await out.write("data: first\n\n");
  seen.waiting = true;
  while (!seen.released && !out.client_gone()) {
    http::error_code woken;
    wake.expires_after(5ms);
    co_await wake.async_wait(http::asio::redirect_error(http::use_task, woken));
  }
  seen.seen_gone = out.client_gone();
  out.on_client_gone({});
  co_await out.end_stream();
}

http::handler waiting(watch& seen) {
  return [&seen](http::worker& on, http::request&, http::responder& out) { return waits(seen, on, out); };
}

}  // namespace

TEST_CASE("a stream is chunked for HTTP/1.1, ends with the connection for HTTP/1.0, and HEAD gets none") {
  http_fixture f(three_pieces);
  auto client = f.connect();
  for (int i = 0; i < 2; ++i) {
    client.send(get);
    const auto answer = client.read_until("\r\n0\r\n\r\n");
    CHECK(answer.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
    CHECK(answer.ends_with("\r\n\r\n9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
  }
  auto old = f.connect();
  old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto answer = old.read_to_end();
  CHECK(answer.find("chunked") == std::string::npos);
  CHECK(answer.find("Connection: close\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\ndata: 1\n\ndata: 2\n\n"));

  auto head = f.connect();
  head.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(head.read_to_end().ends_with("\r\n\r\n"));
}

TEST_CASE("an aborted stream has no proper end") {
  http_fixture f(aborts);
  auto client = f.connect();
  client.send(get);
  CHECK(client.read_to_end().ends_with("4\r\nhalf\r\n"));
  // Without chunks only a reset can tell it from a proper end.
  auto old = f.connect();
  old.send("GET / HTTP/1.0\r\n\r\n");
  char byte = 0;
  ssize_t last = 1;
  while (last > 0) last = ::recv(old.fd(), &byte, 1, 0);
  CHECK(last == -1);
  CHECK(errno == ECONNRESET);
}

TEST_CASE("a slow reader holds the writer back") {
  progress seen;
  http_fixture f(endless(seen));
  auto client = f.connect(4096);
  client.send(get);
  REQUIRE(settles(seen.written));
  // What the kernel's two socket buffers take, and no more.
  const std::size_t before = seen.written;
  CHECK(before < (16U << 20));
  std::size_t read = 0;
  while (read < before) {
    const auto some = client.read_some();
    REQUIRE_FALSE(some.empty());
    read += some.size();
  }
  CHECK(eventually([&] { return seen.written > before; }));
  CHECK(settles(seen.written));
  CHECK(seen.written < read + (16U << 20));
  client.close();
  CHECK(eventually([&] { return seen.refused.load(); }));
  CHECK(eventually([&] { return f.server->active_requests() == 0; }));
}

TEST_CASE("a client that takes nothing within the write time-out is given up") {
  progress seen;
  http_fixture f(endless(seen), {.write_timeout = 100ms});
  auto client = f.connect(4096);
  client.send(get);
  CHECK(eventually([&] { return seen.refused.load(); }));
  CHECK(eventually([&] { return f.server->open_connections() == 0; }));
}

TEST_CASE("a client that leaves is noticed while the handler waits") {
  for (const bool with_reset : {false, true}) {
    CAPTURE(with_reset);
    watch seen;
    http_fixture f(waiting(seen));
    auto client = f.connect();
    client.send(get);
    CHECK(client.read_until("data: first\n\n\r\n").ends_with("data: first\n\n\r\n"));
    REQUIRE(eventually([&] { return seen.waiting.load(); }));
    CHECK(seen.told == 0);
    const auto left = std::chrono::steady_clock::now();
    if (with_reset)
      client.reset();
    else
      client.close();
    CHECK(eventually([&] { return f.server->active_requests() == 0; }));
    CHECK(std::chrono::steady_clock::now() - left < 1s);
    CHECK(seen.told == 1);
    CHECK(seen.seen_gone);
  }
}

TEST_CASE("a pipelined request does not look like a client that left, and is answered after") {
  watch seen;
  http_fixture f(waiting(seen));
  auto client = f.connect();
  client.send(get);
  client.read_until("data: first\n\n\r\n");
  client.send(get);
  REQUIRE(eventually([&] { return seen.waiting.load(); }));
  seen.released = true;
  CHECK(client.read_until("0\r\n\r\n") == "0\r\n\r\n");
  CHECK(client.read_until("\r\n0\r\n\r\n").ends_with("data: first\n\n\r\n0\r\n\r\n"));
  CHECK(seen.told == 0);
  CHECK_FALSE(seen.seen_gone);
}

TEST_CASE("a whole answer still reaches a client that has only closed its sending side") {
  http_fixture f(echo);
  auto client = f.connect();
  client.send("GET /half HTTP/1.1\r\nHost: x\r\n\r\n");
  client.finish_sending();
  CHECK(client.read_to_end().ends_with("GET /half "));
}
