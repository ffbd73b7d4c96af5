#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using behaviour = fake_engine::behaviour;
using steady = std::chrono::steady_clock;

TEST_CASE("without a ready engine: 503 with Retry-After and the reason") {
  gateway_fixture g;
  CHECK(g.get("/readyz").status == 503);
  const auto at_first = g.chat();
  CHECK(at_first.status == 503);
  CHECK(at_first.body.find("no engine has announced itself yet") != std::string::npos);
  REQUIRE(eventually([&] {
    g.announce("e0", "http://127.0.0.1:1", fb::EngineState::Starting);
    return g.get("/v1/models").body.find("\"id\":\"m\"") != std::string::npos;
  }));
  const auto answer = g.chat();
  CHECK(answer.status == 503);
  CHECK(header(answer, "retry-after") == "1");
  CHECK(answer.body.find("No engine can take a request for `m` now") != std::string::npos);
  CHECK(answer.body.find("no_engine_ready") != std::string::npos);
  CHECK(g.get("/readyz").status == 503);
}

TEST_CASE("an engine that refuses is passed over without the client noticing") {
  const auto nobody = "http://127.0.0.1:" + std::to_string(free_port());
  fake_engine e1("e1");
  gateway::settings how;
  how.tokens.chain = {gateway::token_step::text};  // else asking it for tokens would find the failure first
  gateway_fixture g(how);
  g.add({&e1});
  g.announce("e0", nobody);
  fake_router router(*g.outside, {{"e0", nobody}, {"e1", e1.url()}});
  const auto answer = g.chat();
  CHECK(answer.status == 200);
  CHECK(header(answer, "x-infernex-endpoint") == "e1");
  CHECK(g.metric("infernex_gateway_retries_total") == 1);
  // In back-off now: the next request does not try it first.
  CHECK(header(g.chat(), "x-infernex-endpoint") == "e1");
  CHECK(g.metric("infernex_gateway_retries_total") == 1);
}

TEST_CASE("failures before the first event go to the next engine") {
  for (const auto how : {behaviour::loading, behaviour::die_before_event}) {
    CAPTURE(static_cast<int>(how));
    fake_engine e0("e0");
    fake_engine e1("e1");
    e0.answers = how;
    e1.answers = behaviour::stream;
    gateway_fixture g;
    g.add({&e0, &e1});
    // The router names one at a time: the second comes from asking again.
    fake_router router(*g.outside, {{"e0", e0.url()}, {"e1", e1.url()}});
    const auto answer = g.chat(R"(,"stream":true)");
    CHECK(answer.status == 200);
    CHECK(header(answer, "x-infernex-endpoint") == "e1");
    CHECK(answer.body == event_role + event_text + event_usage + event_done);
    CHECK(e0.chats == 1);
    CHECK(e1.chats == 1);
  }
}

TEST_CASE("when every engine has failed the client is told which and how") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  e0.answers = behaviour::loading;
  e1.answers = behaviour::loading;
  gateway_fixture g;
  g.add({&e0, &e1});
  fake_router router(*g.outside, {{"e0", e0.url()}, {"e1", e1.url()}});
  const auto answer = g.chat();
  CHECK(answer.status == 503);
  CHECK(header(answer, "retry-after") == "1");
  CHECK(answer.body.find("e0 answered 503; e1 answered 503") != std::string::npos);
  CHECK(e0.chats == 1);
  CHECK(e1.chats == 1);
}

TEST_CASE("an engine that dies in mid-stream: an error event, then a broken connection") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  e0.answers = behaviour::die_in_stream;
  gateway_fixture g;
  g.add({&e0, &e1});
  fake_router router(*g.outside, {{"e0", e0.url()}, {"e1", e1.url()}});
  auto socket = g.socket();
  REQUIRE(socket.send(gateway_fixture::chat_bytes(R"(,"stream":true)")));
  const auto all = socket.read_to_end();
  CHECK(all.find("HTTP/1.1 200 OK") == 0);
  CHECK(all.find(event_text) != std::string::npos);
  CHECK(all.find("data: {\"error\":{\"message\":\"The stream ended early: engine e0 broke the connection.") !=
        std::string::npos);
  CHECK(all.find("\"del\n") == std::string::npos);  // the half event was held back
  CHECK(all.find("[DONE]") == std::string::npos);
  CHECK(all.find("\r\n0\r\n\r\n") == std::string::npos);  // no proper end
  CHECK(e1.chats == 0);
  CHECK(g.metric("infernex_gateway_broken_streams_total") == 1);
}

TEST_CASE("a client that leaves frees the engine at once") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  SUBCASE("in mid-stream") { e0.answers = behaviour::hang_after_head; }
  SUBCASE("while it waits for the answer's head") { e0.answers = behaviour::hang; }
  auto socket = g.socket();
  REQUIRE(socket.send(gateway_fixture::chat_bytes(R"(,"stream":true)")));
  if (e0.answers == behaviour::hang_after_head) {
    REQUIRE(socket.read_until(event_text).ends_with(event_text));
  } else {
    REQUIRE(eventually([&] { return e0.chats == 1; }));
  }
  CHECK(g.metric("infernex_gateway_in_flight_requests") == 1);
  socket.close();
  CHECK(eventually([&] { return e0.left_by_client == 1; }, 1s));
  CHECK(eventually([&] { return g.metric("infernex_gateway_client_gone_total") == 1; }));
  CHECK(g.metric("infernex_gateway_in_flight_requests") == 0);
}

TEST_CASE("a client that leaves before its request is placed ends the waiting at once") {
  fake_engine e0("e0");
  gateway::settings how;
  how.route_timeout = 10s;
  how.tokens.render_timeout = 10s;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {}, true);
  bool asking_for_tokens = false;
  SUBCASE("while an engine is asked for tokens") { asking_for_tokens = true; }
  SUBCASE("while a router is asked") {}
  e0.render_hangs = asking_for_tokens;
  auto socket = g.socket();
  REQUIRE(socket.send(gateway_fixture::chat_bytes()));
  REQUIRE(eventually([&] { return asking_for_tokens ? e0.renders == 1 : router.queries == 1; }));
  CHECK(g.metric("infernex_gateway_in_flight_requests") == 1);
  socket.close();
  CHECK(eventually([&] { return g.metric("infernex_gateway_in_flight_requests") == 0; }, 1s));
  if (asking_for_tokens) CHECK(eventually([&] { return e0.left_by_client == 1; }, 1s));
  CHECK(g.metric("infernex_gateway_requests_total{code=\"499\"}") == 1);
  CHECK(e0.chats == 0);
}

TEST_CASE("an engine that cannot give tokens in time does not hold a request up") {
  fake_engine e0("e0");
  e0.render_hangs = true;
  e0.has_tokenize = false;
  gateway::settings how;
  how.tokens.render_timeout = 100ms;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  const auto answer = g.chat();
  CHECK(answer.status == 200);
  CHECK(header(answer, "x-infernex-decision") == "kv-aware: test; keys: text");
  CHECK(e0.renders == 1);
  CHECK(e0.tokenizes == 1);
  CHECK(router.last_keys().empty());
  CHECK(g.metric("infernex_gateway_tokenized_total{by=\"text\"}") == 1);
}

TEST_CASE("an answer that takes too long is 504 and cancelled") {
  fake_engine e0("e0");
  e0.answers = behaviour::hang;
  gateway::settings how;
  how.timeout = 300ms;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  const auto before = steady::now();
  const auto answer = g.chat();
  CHECK(answer.status == 504);
  CHECK(answer.body.find("within 300 ms") != std::string::npos);
  CHECK(steady::now() - before < 5s);
  CHECK(eventually([&] { return e0.left_by_client == 1; }, 1s));
  CHECK(e0.chats == 1);
}

TEST_CASE("more requests than configured are told to come back") {
  fake_engine e0("e0");
  e0.answers = behaviour::hang;
  gateway::settings how;
  how.max_in_flight = 1;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  auto first = g.socket();
  REQUIRE(first.send(gateway_fixture::chat_bytes()));
  REQUIRE(eventually([&] { return e0.chats == 1; }));
  const auto answer = g.chat();
  CHECK(answer.status == 429);
  CHECK(header(answer, "retry-after") == "1");
  first.close();
  e0.answers = behaviour::whole;
  CHECK(eventually([&] { return g.chat().status == 200; }));
}

TEST_CASE("a stop lets a running request finish") {
  fake_engine e0("e0");
  e0.answers = behaviour::slow_stream;
  gateway_fixture g;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  auto socket = g.socket();
  REQUIRE(socket.send(gateway_fixture::chat_bytes(R"(,"stream":true)")));
  REQUIRE(socket.read_until(event_text).ends_with(event_text));
  g.gateway->stop(10s);
  CHECK(socket.read_to_end().find(event_done) != std::string::npos);
  CHECK(e0.left_by_client == 0);
}

TEST_CASE("a stop cuts off at its deadline what still runs, and ends the engine's work on it") {
  fake_engine e0("e0");
  e0.answers = behaviour::hang_after_head;
  gateway_fixture g;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  auto socket = g.socket();
  REQUIRE(socket.send(gateway_fixture::chat_bytes(R"(,"stream":true)")));
  REQUIRE(socket.read_until(event_text).ends_with(event_text));
  const auto before = steady::now();
  g.gateway->stop(200ms);
  CHECK(steady::now() - before < 5s);
  CHECK(eventually([&] { return e0.left_by_client == 1; }));
  CHECK(socket.read_to_end().find("[DONE]") == std::string::npos);
}
