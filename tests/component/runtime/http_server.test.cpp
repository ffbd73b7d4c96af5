#include <thread>

#include <doctest/doctest.h>

#include "actors/runtime/http/admin.hpp"
#include "actors/runtime/metrics.hpp"
#include "tests/component/runtime/http_fixture.hpp"
#include "tests/support/wait.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool is_openai_error(const std::string& answer, unsigned status, std::string_view code) {
  return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ") && has(answer, "{\"error\":{\"message\":\"") &&
         has(answer, "\"code\":\"" + std::string(code) + "\"") && has(answer, "Connection: close");
}

http::task<void> throws(http::worker&, http::request&, http::responder&) {
  throw std::runtime_error("broken on purpose");
  co_return;
}

http::task<void> stays_silent(http::worker&, http::request&, http::responder&) { co_return; }

http::task<void> stops_in_the_middle(http::worker&, http::request&, http::responder& out) {
  co_await out.start_stream(200, "text/plain");
  co_await out.write("half");
}

http::task<void> answers_its_worker(http::worker& on, http::request&, http::responder& out) {
  const auto body = std::to_string(on.index());
  co_await out.send(200, "text/plain", body);
}

http::task<void> sets_headers(http::worker&, http::request&, http::responder& out) {
  http::fields extra;
  extra.push_back({"X-Good", "yes"});
  extra.push_back({"X-Bad", "a\r\nX-Injected: b"});
  extra.push_back({"Content-Length", "1"});
  co_await out.send(200, "text/plain", "body", extra);
}

}  // namespace

TEST_CASE("requests of one connection are answered in order, also when they are pipelined") {
  http_fixture f(echo);
  auto client = f.connect();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(client.send("POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"));
    const auto answer = client.read_response();
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.ends_with("\r\n\r\nPOST /a hello"));
  }
  std::string many;
  for (int i = 0; i < 100; ++i) many += "\r\nGET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  REQUIRE(client.send(many));
  for (int i = 0; i < 100; ++i) CHECK(client.read_response().ends_with("GET /" + std::to_string(i) + " "));
  CHECK(f.server->counts().requests == 103);
  CHECK(f.server->counts().accepted == 1);
}

TEST_CASE("a request that arrives byte by byte is understood") {
  http_fixture f(echo);
  auto client = f.connect();
  for (const char c : std::string("POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n"))
    REQUIRE(client.send(std::string_view(&c, 1)));
  CHECK(client.read_response().ends_with("POST /slow abcdefg"));
}

TEST_CASE("HTTP/1.0 closes unless asked to stay, HEAD has no body") {
  http_fixture f(echo);
  auto old = f.connect();
  REQUIRE(old.send("GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  CHECK(has(old.read_response(), "Connection: keep-alive"));
  REQUIRE(old.send("GET /old HTTP/1.0\r\n\r\n"));
  const auto last = old.read_to_end();
  CHECK(has(last, "Connection: close"));
  CHECK(last.ends_with("GET /old "));

  auto head = f.connect();
  REQUIRE(head.send("HEAD /h HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  const auto answer = head.read_to_end();
  CHECK(has(answer, "Content-Length: 8\r\n"));
  CHECK(answer.ends_with("\r\n\r\n"));
}

TEST_CASE("Expect: 100-continue is answered before the body is sent") {
  http_fixture f(echo);
  auto client = f.connect();
  REQUIRE(client.send("POST /e HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  REQUIRE(client.send("ok"));
  CHECK(client.read_response().ends_with("POST /e ok"));
}

TEST_CASE("bad HTTP is answered with 400 in OpenAI's shape, then the connection closes") {
  http_fixture f(echo);
  const auto answer_to = [&](std::string_view request) {
    auto client = f.connect();
    client.send(request);
    return client.read_to_end();
  };
  for (const std::string_view bad : {
           "complete nonsense\r\n\r\n",
           "GET / HTTP/3.7\r\nHost: x\r\n\r\n",
           "GET / HTTP/1.1\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nabcd",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       }) {
    CAPTURE(bad);
    CHECK(is_openai_error(answer_to(bad), 400, "malformed_http"));
  }
  CHECK(f.server->counts().rejected == 10);
  CHECK(f.server->counts().requests == 0);
}

TEST_CASE("headers over the bound are answered with 431, in one piece or in many") {
  http_fixture f(echo, {.max_header_bytes = 4096});
  auto one = f.connect();
  one.send("GET / HTTP/1.1\r\nHost: x\r\nLong: " + std::string(5000, 'a') + "\r\n\r\n");
  CHECK(is_openai_error(one.read_to_end(), 431, "headers_too_large"));

  auto many = f.connect();
  many.send("GET / HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < 200; ++i) many.send("Short-" + std::to_string(i) + ": " + std::string(40, 'a') + "\r\n");
  CHECK(is_openai_error(many.read_to_end(), 431, "headers_too_large"));

  auto path = f.connect();
  path.send("GET /" + std::string(5000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(is_openai_error(path.read_to_end(), 431, "headers_too_large"));
}

TEST_CASE("a body over the bound is answered with 413, which a client that only sends can still read") {
  http_fixture f(echo);
  const std::string megabyte(1 << 20, 'x');
  auto announced = f.connect();
  announced.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20971520\r\n\r\n");
  // Fails at some point, as the server stops reading long before the end; the answer is there all the same.
  for (int i = 0; i < 20 && announced.send(megabyte); ++i) {
  }
  CHECK(is_openai_error(announced.read_to_end(), 413, "request_too_large"));

  auto chunked = f.connect();
  chunked.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20 && chunked.send("100000\r\n" + megabyte + "\r\n"); ++i) {
  }
  CHECK(is_openai_error(chunked.read_to_end(), 413, "request_too_large"));

  // A client that asks first never sends its body.
  auto polite = f.connect();
  polite.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 20971520\r\n\r\n");
  polite.finish_sending();
  CHECK(is_openai_error(polite.read_to_end(), 413, "request_too_large"));
}

TEST_CASE("a body of exactly the bound is accepted") {
  http_fixture f(echo, {.max_body_bytes = 100'000});
  auto client = f.connect();
  const std::string body(100'000, 'b');
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + body);
  CHECK(client.read_response().ends_with("POST / " + body));
}

TEST_CASE("a request that does not arrive in time is answered with 408, an idle connection just closes") {
  http_fixture f(echo, {.read_timeout = 100ms, .idle_timeout = 100ms});
  auto slow = f.connect();
  slow.send("GET / HTTP/1.1\r\nHos");
  CHECK(is_openai_error(slow.read_to_end(), 408, "request_timeout"));
  slow.close();
  auto idle = f.connect();
  CHECK(idle.read_to_end().empty());
  CHECK(eventually([&] { return f.server->open_connections() == 0; }));
}

TEST_CASE("handlers that fail give a 500, or cut the answer off if it has begun") {
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const auto handle : {throws, stays_silent}) {
    http_fixture f(handle);
    auto client = f.connect();
    for (int i = 0; i < 2; ++i) {
      client.send(request);
      const auto answer = client.read_response();
      CHECK(answer.starts_with("HTTP/1.1 500 "));
      CHECK(has(answer, "\"type\":\"server_error\",\"param\":null,\"code\":\"internal_error\""));
      CHECK_FALSE(has(answer, "on purpose"));
    }
    CHECK(f.server->counts().failures == 2);
  }
  http_fixture f(stops_in_the_middle);
  auto client = f.connect();
  client.send(request);
  const auto answer = client.read_to_end();
  CHECK(answer.ends_with("\r\n\r\n4\r\nhalf\r\n"));
  CHECK(f.server->counts().failures == 1);
}

TEST_CASE("connections over the bound are told so") {
  http_fixture f(echo, {.max_connections = 2});
  auto first = f.connect();
  auto second = f.connect();
  REQUIRE(eventually([&] { return f.server->open_connections() == 2; }));
  auto third = f.connect();
  const auto answer = third.read_to_end();
  CHECK(is_openai_error(answer, 503, "too_many_connections"));
  CHECK(has(answer, "Retry-After: 1"));
  first.close();
  REQUIRE(eventually([&] { return f.server->open_connections() == 1; }));
  auto fourth = f.connect();
  fourth.send("GET /4 HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(fourth.read_response().ends_with("GET /4 "));
  CHECK(f.server->counts().turned_away == 1);
}

TEST_CASE("both of two workers serve") {
  http_fixture f(answers_its_worker, {}, 2);
  bool seen[2] = {};
  // The kernel spreads connections by a hash of the client's port, so a few are needed.
  for (int i = 0; i < 200 && !(seen[0] && seen[1]); ++i) {
    auto client = f.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    seen[client.read_response().ends_with("1") ? 1 : 0] = true;
  }
  CHECK(seen[0]);
  CHECK(seen[1]);
}

TEST_CASE("fields that would break the framing are left out of an answer") {
  http_fixture f(sets_headers);
  auto client = f.connect();
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto answer = client.read_response();
  CHECK(has(answer, "X-Good: yes\r\n"));
  CHECK_FALSE(has(answer, "Injected"));
  CHECK(answer.ends_with("Content-Length: 4\r\n\r\nbody"));
}

TEST_CASE("the admin endpoint answers metrics, liveness and readiness") {
  metrics_registry metrics;
  metrics.counter("infernex_test_things_total", "Things").Increment(3);
  std::atomic<bool> ready{false};
  http::io_threads threads(1);
  auto server = http::serve_admin(threads, {}, metrics, [&ready] { return ready.load(); });
  REQUIRE(server);
  auto client = raw_socket::connect((*server)->port());
  const auto get = [&](const std::string& path) {
    client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.read_response();
  };
  const auto page = get("/metrics");
  CHECK(has(page, "Content-Type: text/plain; version=0.0.4"));
  CHECK(has(page, "infernex_test_things_total 3"));
  CHECK(get("/healthz").starts_with("HTTP/1.1 200 "));
  CHECK(get("/readyz").starts_with("HTTP/1.1 503 "));
  ready = true;
  CHECK(get("/readyz").starts_with("HTTP/1.1 200 "));
  CHECK(has(get("/other"), "\"type\":\"not_found_error\""));
  client.send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  CHECK(client.read_response().starts_with("HTTP/1.1 405 "));
}
