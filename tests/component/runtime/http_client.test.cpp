#include <doctest/doctest.h>

#include "actors/runtime/http/io.hpp"
#include "tests/component/runtime/http_fixture.hpp"
#include "tests/support/wait.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

http::outgoing post(std::string_view target, std::string_view body) {
  http::outgoing what;
  what.method = "POST";
  what.target = target;
  what.headers.push_back({"Content-Type", "application/json"});
  what.body = body;
  return what;
}

result<http::response> fetch(http::worker& on, const http::origin& to, const http::outgoing& what,
                             const http::call_options& options = {}, std::size_t max_bytes = 8 << 20) {
  return run(on, on.upstream().fetch(to, what, options, max_bytes));
}

errc failure(const result<http::response>& of) { return of ? errc::none : of.failure().code; }

/// The pieces of a body as read_some gives them; `on_piece` runs after each.
http::task<std::vector<std::string>> pieces(http::client& via, http::origin to, std::function<void()> on_piece) {
  const auto what = post("/", "");
  const http::call_options options;
  std::vector<std::string> all;
  auto opened = co_await via.open(to, what, options);
  if (!opened) {
    all.push_back(render(opened.failure()));
    co_return all;
  }
  for (;;) {
    auto piece = co_await opened->read_some();
    if (!piece) {
      all.push_back(render(piece.failure()));
      co_return all;
    }
    if (piece->empty()) co_return all;
    all.emplace_back(*piece);
    on_piece();
  }
}

/// Opens, reads one piece, and drops the exchange.
http::task<std::string> first_piece(http::client& via, http::origin to) {
  const auto what = post("/", "");
  const http::call_options options;
  auto opened = co_await via.open(to, what, options);
  if (!opened) co_return render(opened.failure());
  const auto piece = co_await opened->read_some();
  co_return piece ? std::string(*piece) : render(piece.failure());
}

http::task<void> request_cancel(http::cancel_source& source) {
  source.request();
  co_return;
}

/// Opens with a cancel_source that is gone before the body is read.
http::task<std::string> outlives_its_source(http::client& via, http::origin to) {
  auto source = std::make_unique<http::cancel_source>();
  http::call_options options;
  options.cancel = source.get();
  const auto what = post("/", "");
  auto opened = co_await via.open(to, what, options);
  source.reset();
  if (!opened) co_return render(opened.failure());
  const auto body = co_await opened->read_all(100);
  co_return body ? *body : render(body.failure());
}

scripted_peer::script answers(std::string answer) {
  return [answer = std::move(answer)](raw_socket& s, unsigned) {
    s.read_until("\r\n\r\n");
    s.send(answer);
  };
}

}  // namespace

TEST_CASE("calls share a connection, and the request is as it should be") {
  http_fixture f(echo);
  http::io_threads threads(1);
  auto& on = threads.at(0);
  const http::origin to{"127.0.0.1", f.server->port()};
  const std::string large(3 << 20, 'L');
  for (const std::string& body : {std::string("first"), large, std::string("last")}) {
    const auto answer = fetch(on, to, post("/p?q=1", body));
    REQUIRE(answer);
    CHECK(answer->status == 200);
    CHECK(http::find(answer->headers, "content-type") == "text/plain");
    CHECK(answer->body == "POST /p " + body);
  }
  http::outgoing head;
  head.method = "HEAD";
  const auto nothing = fetch(on, to, head);
  REQUIRE(nothing);
  CHECK(nothing->body.empty());
  CHECK(f.server->counts().accepted == 1);

  const auto by_name = fetch(on, {"localhost", f.server->port()}, post("/", "named"));
  REQUIRE(by_name);
  CHECK(by_name->body == "POST / named");

  std::string seen;
  scripted_peer peer([&seen](raw_socket& s, unsigned) {
    seen = s.read_until("\r\n\r\nxyz");
    s.send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  auto what = post("/path", "xyz");
  what.headers.push_back({"X-Evil", "a\r\nInjected: b"});
  what.headers.push_back({"Content-Length", "99"});
  CHECK(fetch(on, peer.at(), what)->status == 204);
  CHECK(seen == "POST /path HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(peer.at().port) +
                    "\r\nConnection: keep-alive\r\nContent-Length: 3\r\nContent-Type: application/json\r\n\r\nxyz");
}

TEST_CASE("a body comes in the pieces in which it arrives") {
  http::io_threads threads(1);
  std::atomic<int> received{0};
  scripted_peer peer([&](raw_socket& s, unsigned) {
    s.read_until("\r\n\r\n");
    s.send(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    // The next piece is sent only after the one before has been handed out.
    s.send("5\r\nalpha\r\n");
    eventually([&] { return received == 1; });
    s.send("3\r\none\r\n3\r\ntwo\r\n5;ext=1\r\nthree\r\n4\r\nha");
    eventually([&] { return received == 2; });
    s.send("lf\r\n0\r\nTrailer: t\r\n\r\n");
  });
  const auto all = run(threads.at(0), pieces(threads.at(0).upstream(), peer.at(), [&] { ++received; }));
  CHECK(all == std::vector<std::string>{"alpha", "onetwothreeha", "lf"});
}

TEST_CASE("bodies by length, until close, and none") {
  http::io_threads threads(1);
  auto& on = threads.at(0);
  const auto body_of = [&](std::string answer) {
    scripted_peer peer(answers(std::move(answer)));
    const auto got = fetch(on, peer.at(), post("/", ""));
    return got ? got->body : render(got.failure());
  };
  CHECK(body_of("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody") == "body");
  CHECK(body_of("HTTP/1.1 200 OK\r\n\r\nuntil the end") == "until the end");
  CHECK(body_of("HTTP/1.0 200 OK\r\n\r\nold") == "old");
  CHECK(body_of("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").empty());
  CHECK(body_of("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").empty());
}

TEST_CASE("what is not HTTP, or ends too early, is an error of the right kind") {
  http::io_threads threads(1);
  auto& on = threads.at(0);
  const auto failure_of = [&](std::string answer, std::size_t max_bytes = 1000) {
    scripted_peer peer(answers(std::move(answer)));
    return failure(fetch(on, peer.at(), post("/", ""), {}, max_bytes));
  };
  CHECK(failure_of("SSH-2.0-OpenSSH_9.2\r\n\r\n") == errc::malformed_input);
  CHECK(failure_of("HTTP/1.1 200 OK\r\nLong: " + std::string(70'000, 'h') + "\r\n\r\n") == errc::malformed_input);
  CHECK(failure_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n") == errc::malformed_input);
  CHECK(failure_of("HTTP/1.1 101 Switching Protocols\r\n\r\n") == errc::malformed_input);
  CHECK(failure_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") == errc::connection_lost);
  CHECK(failure_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n") == errc::connection_lost);
  CHECK(failure_of("HTTP/1.1 200 OK\r\nContent-") == errc::connection_lost);
  CHECK(failure_of("") == errc::connection_lost);
  CHECK(failure_of("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'b')) == errc::too_large);
  http::outgoing split;
  split.target = "/ HTTP/1.1\r\nInjected: x";
  CHECK(failure(fetch(on, {"127.0.0.1", 1}, split)) == errc::invalid_request);
}

TEST_CASE("a refused connection is reported at once") {
  http::io_threads threads(1);
  std::uint16_t port = 0;
  {
    scripted_peer gone([](raw_socket&, unsigned) {});
    port = gone.at().port;
  }
  const auto begun = std::chrono::steady_clock::now();
  const auto answer = fetch(threads.at(0), {"127.0.0.1", port}, post("/", ""));
  CHECK(failure(answer) == errc::unreachable);
  CHECK(answer.failure().detail.find("127.0.0.1:" + std::to_string(port)) == 0);
  CHECK(std::chrono::steady_clock::now() - begun < 1s);
}

TEST_CASE("time-outs: connecting, waiting for the head, waiting for more of the body") {
  http::io_threads threads(1);
  auto& on = threads.at(0);
  {
    // A listener whose queue is full drops further connection attempts without a word.
    const int full = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(full, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(::listen(full, 0) == 0);
    REQUIRE(::getsockname(full, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    const auto waiting = raw_socket::connect(ntohs(at.sin_port));
    http::call_options options;
    options.connect_timeout = 100ms;
    CHECK(failure(fetch(on, {"127.0.0.1", ntohs(at.sin_port)}, post("/", ""), options)) == errc::timed_out);
    ::close(full);
  }
  http::call_options options;
  options.response_timeout = 100ms;
  options.idle_timeout = 100ms;
  scripted_peer silent([](raw_socket& s, unsigned) { s.read_to_end(); });
  CHECK(failure(fetch(on, silent.at(), post("/", ""), options)) == errc::timed_out);
  scripted_peer stalls([](raw_socket& s, unsigned) {
    s.read_until("\r\n\r\n");
    s.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    s.read_to_end();
  });
  CHECK(failure(fetch(on, stalls.at(), post("/", ""), options)) == errc::timed_out);
}

TEST_CASE("a call can be cancelled before, while it waits for the head, and while it reads the body") {
  http::io_threads threads(1);
  auto& on = threads.at(0);
  std::atomic<bool> reached{false};
  std::atomic<bool> closed{false};
  const auto cancelled_with = [&](std::string answer) {
    reached = closed = false;
    scripted_peer peer([&](raw_socket& s, unsigned) {
      s.read_until("\r\n\r\n");
      s.send(answer);
      reached = true;
      closed = s.read_to_end().empty();
    });
    http::cancel_source source;
    http::call_options options;
    options.cancel = &source;
    auto call = std::async(std::launch::async, [&] { return failure(fetch(on, peer.at(), post("/", ""), options)); });
    eventually([&] { return reached.load(); });
    on.spawn(request_cancel(source));
    const errc code = call.get();
    CHECK(eventually([&] { return closed.load(); }));
    CHECK(source.requested());
    CHECK(failure(fetch(on, peer.at(), post("/", ""), options)) == errc::cancelled);
    CHECK(peer.connections() == 1);
    return code;
  };
  CHECK(cancelled_with("") == errc::cancelled);
  CHECK(cancelled_with("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") == errc::cancelled);

  scripted_peer peer(answers("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"));
  CHECK(run(on, outlives_its_source(on.upstream(), peer.at())) == "body");
}

TEST_CASE("a pooled connection that dies before the first byte is replaced once") {
  http::io_threads threads(1);
  auto& on = threads.at(0);
  scripted_peer peer([](raw_socket& s, unsigned number) {
    s.read_until("\r\n\r\n");
    s.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(number));
    if (number == 0) s.read_until("\r\n\r\n");  // the next request gets no answer
  });
  CHECK(fetch(on, peer.at(), post("/", ""))->body == "0");
  CHECK(fetch(on, peer.at(), post("/", ""))->body == "1");
  CHECK(peer.connections() == 2);

  // A fresh connection is not tried again, nor is one whose response has begun.
  scripted_peer closes([](raw_socket& s, unsigned) { s.read_until("\r\n\r\n"); });
  CHECK(failure(fetch(on, closes.at(), post("/", ""))) == errc::connection_lost);
  CHECK(closes.connections() == 1);
  scripted_peer breaks_off([](raw_socket& s, unsigned) {
    s.read_until("\r\n\r\n");
    s.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    s.read_until("\r\n\r\n");
    s.send("HTTP/1.1 2");
  });
  CHECK(fetch(on, breaks_off.at(), post("/", ""))->status == 200);
  CHECK(failure(fetch(on, breaks_off.at(), post("/", ""))) == errc::connection_lost);
  CHECK(breaks_off.connections() == 1);
}

TEST_CASE("idle connections: closed by the other side, closed by age, and not kept when asked not to") {
  http::client_settings pool;
  pool.idle_timeout = 50ms;
  http::io_threads threads(1, pool);
  auto& on = threads.at(0);
  std::atomic<int> ended{0};
  scripted_peer peer([&](raw_socket& s, unsigned number) {
    s.read_until("\r\n\r\n");
    s.send(number == 0 ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                       : "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    s.read_to_end();
    ++ended;
  });
  CHECK(fetch(on, peer.at(), post("/", ""))->status == 200);
  CHECK(eventually([&] { return ended == 1; }));
  CHECK(fetch(on, peer.at(), post("/", ""))->status == 200);
  CHECK(eventually([&] { return ended == 2; }));  // swept, with no further call
  CHECK(peer.connections() == 2);

  scripted_peer leaves(answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  for (int i = 0; i < 20; ++i) CHECK(fetch(on, leaves.at(), post("/", ""))->status == 200);
}

TEST_CASE("an answer that comes before the request is read whole is delivered") {
  http::io_threads threads(1);
  scripted_peer peer([](raw_socket& s, unsigned) {
    s.read_until("\r\n\r\n");
    s.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge");
  });
  const std::string body(30 << 20, 'x');
  const auto answer = fetch(threads.at(0), peer.at(), post("/", body));
  REQUIRE(answer);
  CHECK(answer->status == 413);
  CHECK(answer->body == "large");
}

TEST_CASE("dropping an exchange closes its connection") {
  http::io_threads threads(1);
  std::atomic<bool> closed{false};
  scripted_peer peer([&](raw_socket& s, unsigned) {
    s.read_until("\r\n\r\n");
    s.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin");
    closed = s.read_to_end().empty();
  });
  CHECK(run(threads.at(0), first_piece(threads.at(0).upstream(), peer.at())) == "begin");
  CHECK(eventually([&] { return closed.load(); }));
}
