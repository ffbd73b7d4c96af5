// Requests whose engines say nothing of their caches, or not yet.

#include "actors/runtime/supervisor.hpp"
#include "gateway/actor.hpp"
#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

gateway::settings embedded() {
  gateway::settings how;
  how.router = gateway::router_mode::embedded;
  how.policy.strategy = "kv-aware";  // by cached blocks, however little a short prompt costs
  return how;
}

/// A chat whose text fills so many pieces.
std::string long_chat(std::size_t pieces, const std::string& end, char of = 'a') {
  return R"({"model":"m","messages":[{"role":"user","content":")" + std::string(pieces * 512, of) + end + R"("}]})";
}

}  // namespace

TEST_CASE("embedded: without KV events a prompt goes where its like went before, and parity is counted apart") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  gateway_fixture g(embedded(), std::make_shared<indexer::index_set>());
  g.add({&e0, &e1});
  const auto first = header(g.chat(), "x-infernex-endpoint");
  REQUIRE(eventually([&] { return g.metric("infernex_gateway_predicted_blocks") == 2; }));
  for (int i = 0; i < 6; ++i) {
    const auto answer = g.chat();
    CHECK(header(answer, "x-infernex-endpoint") == first);
    CHECK(header(answer, "x-infernex-decision").starts_with("kv-aware by prediction (the model is not indexed): "));
    CHECK(header(answer, "x-infernex-decision").find("predicted 2 of 2 blocks") != std::string::npos);
  }
  CHECK(g.metric("infernex_gateway_decisions_by_prediction_total") == 6);
  CHECK(g.metric("infernex_gateway_predicted_cached_tokens_total{by=\"prediction\"}") == 6 * 32);
  CHECK(eventually([&] {
    return g.metric("infernex_gateway_instance_cached_tokens_total{by=\"prediction\",instance=\"" + first + "\"}") ==
           6 * 32;
  }));
  CHECK(g.metric("infernex_gateway_instance_cached_tokens_total{by=\"index\"") == 0);
}

TEST_CASE("a prompt whose tokens nobody knows is keyed by its text, and the decision shows it") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  e0.has_render = e1.has_render = false;
  e0.has_tokenize = e1.has_tokenize = false;
  gateway_fixture g(embedded(), std::make_shared<indexer::index_set>());
  g.add({&e0, &e1});
  const auto ask = [&](const std::string& end) {
    return g.call("POST", "/v1/chat/completions", long_chat(4, end), {{"Content-Type", "application/json"}});
  };
  const auto first = header(ask("one"), "x-infernex-endpoint");
  REQUIRE(eventually([&] { return g.metric("infernex_gateway_predicted_blocks") == 4; }));
  for (int i = 0; i < 4; ++i) {
    const auto answer = ask("another");
    CHECK(header(answer, "x-infernex-endpoint") == first);
    CHECK(header(answer, "x-infernex-decision").find("predicted 4 of 4 blocks") != std::string::npos);
    CHECK(header(answer, "x-infernex-decision").ends_with("; keys: text"));
  }
  CHECK(g.metric("infernex_gateway_tokenized_total{by=\"text\"}") == 5);
}

TEST_CASE("a prediction moves with a request that its first engine failed") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  auto how = embedded();
  how.tokens.chain = {gateway::token_step::text};
  gateway_fixture g(how, std::make_shared<indexer::index_set>());
  g.add({&e0, &e1});
  e0.answers = fake_engine::behaviour::loading;
  // Which engine is asked first is chance: prompts that have nothing in common, until it was the one that fails.
  int prompts = 0;
  do {
    const auto answer = g.call("POST", "/v1/chat/completions", long_chat(4, "x", static_cast<char>('a' + prompts)));
    CHECK(header(answer, "x-infernex-endpoint") == "e1");
  } while (++prompts < 26 && g.metric("infernex_gateway_retries_total") == 0);
  CHECK(g.metric("infernex_gateway_retries_total") == 1);
  // Of the two engines, one holds the four blocks of each.
  CHECK(eventually([&] { return g.metric("infernex_gateway_predicted_blocks") == 4 * prompts; }));
}

TEST_CASE("bus: keys of text travel in the query") {
  fake_engine e0("e0");
  gateway::settings how;
  how.tokens.chain = {gateway::token_step::text};
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  CHECK(g.call("POST", "/v1/chat/completions", long_chat(3, "x")).status == 200);
  CHECK(router.last_keys().size() == 3);
}

TEST_CASE("the rank of an engine goes into the header, instead of the client's own") {
  fake_engine e0("e0");
  gateway_fixture g(embedded(), std::make_shared<indexer::index_set>());
  REQUIRE(eventually([&] {
    g.announce("e0-dp3", e0.url(), fb::EngineState::Ready, "m", 3);
    return g.get("/readyz").status == 200;
  }));
  CHECK(g.chat({}, {{"X-Data-Parallel-Rank", "9"}}).status == 200);
  const auto seen = e0.last_seen();
  CHECK(seen.find("X-data-parallel-rank: 3\n") != std::string::npos);
  CHECK(seen.find(": 9\n") == std::string::npos);
}

TEST_CASE("a router that keeps silent is soon no longer asked, and asked again once it may be back") {
  fake_engine e0("e0");
  gateway::settings how;
  how.route_timeout = 50ms;
  how.breaker = {2, 100ms, 10s};
  gateway_fixture g(how);
  g.add({&e0});
  std::optional<fake_router> router(std::in_place, *g.outside, std::vector<fake_router::target>{}, true);
  const std::string skipped = "routers keep silent and are not asked for a while; by load only: ";
  // Each of the two threads finds out by itself.
  REQUIRE(eventually([&] {
    const auto answer = g.chat();
    CHECK(answer.status == 200);
    return header(answer, "x-infernex-decision").starts_with(skipped);
  }));
  CHECK(g.metric("infernex_gateway_route_skipped_total") >= 1);
  CHECK(g.metric("infernex_gateway_route_pauses_total") >= 1);
  router.reset();
  router.emplace(*g.outside, std::vector<fake_router::target>{{"e0", e0.url()}});
  CHECK(eventually([&] { return header(g.chat(), "x-infernex-decision").starts_with("kv-aware: test"); }));
}

TEST_CASE("an actor that dies takes no life event with it") {
  nats_server nats;
  metrics_registry metrics;
  bus_settings to;
  to.url = nats.url();
  auto inside = bus::connect(to, metrics);
  auto outside = bus::connect(to, metrics);
  REQUIRE(inside.ok());
  REQUIRE(outside.ok());
  std::atomic<std::uint32_t> in_flight{0};
  std::atomic<bool> started{false};
  auto listening = (*outside)->subscribe((*outside)->names().any_request_life(), {lane::stream, {}, 64},
                                         [&](inbound<fb::RequestLife>&& m) {
                                           if (const auto* rows = m.message->in_flight(); rows && rows->size() != 0)
                                             in_flight = rows->Get(0)->requests();
                                           if (const auto* ids = m.message->started())
                                             started = started || ids->size() == 2;
                                         });
  REQUIRE(listening.ok());
  actor_config config;
  caf::actor_system system(config);
  const runtime process{system, **inside, metrics, "test", 1, {}};
  const auto facts = std::make_shared<gateway::gateway_facts>(gateway::settings{}, metrics, "gateway/test", 1);
  const auto place = [&](const char* id) {
    gateway::life_events placed;
    placed.changes.push_back({"m", "e0", 1, 10, 1, id});
    return facts->inbox.put(std::move(placed));
  };
  const auto end = [&](gateway_actor& actor) {
    REQUIRE(stop_and_wait(system, caf::actor_cast<caf::strong_actor_ptr>(actor), 5s));
  };
  auto first = gateway::spawn_gateway_actor(process, facts, 1ms);
  end(first);
  // Its successor is not there yet: the wake-up goes nowhere, and no other is sent.
  CHECK(place("r1"));
  CHECK_FALSE(place("r2"));
  auto second = gateway::spawn_gateway_actor(process, facts, 1ms);
  CHECK(eventually([&] { return in_flight == 2 && started; }));
  end(second);
}
