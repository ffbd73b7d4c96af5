#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using behaviour = fake_engine::behaviour;

TEST_CASE("a whole answer comes through unchanged, with the gateway's headers") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.kv_health = fb::KvHealth::Live;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url(), 2}});
  const auto answer =
      g.call("POST", "/v1/chat/completions?a=1", gateway_fixture::chat_body(),
             {{"x-request-id", "mine-1"}, {"Authorization", "Bearer k"}, {"Content-Type", "application/json"}});
  CHECK(answer.status == 200);
  CHECK(answer.body.find(R"("engine":"e0")") != std::string::npos);
  CHECK(header(answer, "content-type") == "application/json");
  CHECK(header(answer, "x-engine-header") == "kept");
  CHECK(header(answer, "x-request-id") == "mine-1");
  CHECK(header(answer, "x-infernex-endpoint") == "e0");
  CHECK(header(answer, "x-infernex-decision") == "kv-aware: test; keys: render");
  const auto seen = e0.last_seen();
  CHECK(seen.find("POST /v1/chat/completions?a=1\n") == 0);
  CHECK(seen.find("Authorization: Bearer k\n") != std::string::npos);
  CHECK(seen.find("X-Request-Id: mine-1\n") != std::string::npos);
  CHECK(seen.ends_with("\n" + gateway_fixture::chat_body()));
  CHECK(router.last_keys().size() == 2);  // 33 tokens, 16 a block, the last token is never cached
  CHECK(g.metric("infernex_gateway_requests_total{code=\"200\"}") == 1);
  CHECK(g.metric("infernex_gateway_predicted_cached_tokens_total{by=\"index\"}") == 32);
  CHECK(g.metric("infernex_gateway_cached_tokens_total{by=\"index\"}") == 32);
  CHECK(g.metric("infernex_gateway_in_flight_requests") == 0);
}

TEST_CASE("a stream comes through event by event and ends properly") {
  fake_engine e0("e0");
  e0.answers = behaviour::stream;
  gateway_fixture g;
  g.kv_health = fb::KvHealth::Live;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url(), 2}});
  const auto answer = g.chat(R"(,"stream":true)");
  CHECK(answer.status == 200);
  CHECK(header(answer, "content-type").starts_with("text/event-stream"));
  CHECK(header(answer, "x-infernex-endpoint") == "e0");
  CHECK(!header(answer, "x-request-id").empty());
  CHECK(answer.body == event_role + event_text + event_usage + event_done);
  CHECK(g.metric("infernex_gateway_ttft_seconds_count") == 1);
  CHECK(g.metric("infernex_gateway_cached_tokens_total{by=\"index\"}") == 32);
}

TEST_CASE("both spellings of hermes-router's path, completions, and the list of models") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  for (const auto* path :
       {"/rest/hermes-router/v1beta1/v1/chat/completons", "/rest/hermes-router/v1beta1/v1/chat/completions"}) {
    CHECK(g.call("POST", path, gateway_fixture::chat_body()).status == 200);
    CHECK(e0.last_seen().find("POST /v1/chat/completions\n") == 0);
  }
  CHECK(g.call("POST", "/v1/completions", R"({"model":"m","prompt":"x"})").status == 200);
  CHECK(e0.last_seen().find("POST /v1/completions\n") == 0);
  const auto models = g.get("/v1/models");
  CHECK(models.status == 200);
  CHECK(models.body.find(R"({"object":"list","data":[{"id":"m","object":"model","created":)") == 0);
  CHECK(models.body.find(R"("owned_by":"infernex","root":"m","parent":null,"max_model_len":4096})") !=
        std::string::npos);
  CHECK(g.get("/healthz").status == 200);
}

TEST_CASE("token ids are asked for once, and endpoints an engine does not have once a minute") {
  fake_engine e0("e0");
  e0.has_render = false;
  gateway::settings how;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  // Each of the two threads learns for itself; requests on one connection stay on one thread.
  CHECK(header(g.chat(), "x-infernex-decision") == "kv-aware: test; keys: tokenize");
  CHECK(e0.renders == 1);
  CHECK(e0.tokenizes == 1);
  CHECK(header(g.chat(), "x-infernex-decision") == "kv-aware: test; keys: cache");
  CHECK(e0.renders == 1);
  CHECK(e0.tokenizes == 1);
  CHECK(router.last_keys().size() == 2);
  const auto other = g.call("POST", "/v1/completions", R"({"model":"m","prompt":"else"})");
  CHECK(header(other, "x-infernex-decision") == "kv-aware: test; keys: tokenize");
  CHECK(e0.renders == 1);
  CHECK(e0.tokenizes == 2);
  const auto ids =
      g.call("POST", "/v1/completions", R"({"model":"m","prompt":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]})");
  CHECK(header(ids, "x-infernex-decision") == "kv-aware: test; keys: given");
  CHECK(e0.tokenizes == 2);
  CHECK(router.last_keys().size() == 1);
}

TEST_CASE("mistakes of the client are told as such, each in OpenAI's shape") {
  fake_engine e0("e0");
  gateway::settings how;
  how.max_body_bytes = 64 << 10;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  struct row {
    const char* method;
    const char* path;
    std::string body;
    unsigned status;
    const char* in_body;
  };
  const row rows[] = {
      {"POST", "/v1/chat/completions", R"({"model":"m","messages":[)", 400, "not valid JSON"},
      {"POST", "/v1/chat/completions", R"({"model":"m","messages":"x"})", 400, R"("param":"messages")"},
      {"POST", "/v1/chat/completions", R"({"model":"gpt-x","messages":[{}]})", 404, R"("code":"model_not_found")"},
      {"POST", "/v1/chat/completions", std::string(100'000, ' '), 413, "\"error\""},
      {"GET", "/v1/chat/completions", "", 405, "method_not_allowed"},
      {"POST", "/v1/models", "{}", 405, "method_not_allowed"},
      {"GET", "/v1/nothing", "", 404, "not_found"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.path);
    CAPTURE(row.status);
    const auto answer = g.call(row.method, row.path, row.body);
    CHECK(answer.status == row.status);
    CHECK_MESSAGE(answer.body.find(row.in_body) != std::string::npos, answer.body);
    CHECK(header(answer, "content-type") == "application/json");
  }
  CHECK(e0.chats == 0);
  e0.answers = behaviour::bad_request;
  const auto engines_own = g.chat();
  CHECK(engines_own.status == 400);
  CHECK(engines_own.body.find("the engine's own words") != std::string::npos);
  CHECK(e0.chats == 1);
}
