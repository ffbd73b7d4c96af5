#include "actors/engine/block_key.hpp"
#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;
using behaviour = fake_engine::behaviour;

TEST_CASE("a silent router: placed by load only, and said so") {
  fake_engine e0("e0");
  gateway::settings how;
  how.route_timeout = 100ms;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {}, true);
  const auto answer = g.chat();
  CHECK(answer.status == 200);
  CHECK(header(answer, "x-infernex-endpoint") == "e0");
  CHECK(header(answer, "x-infernex-decision").starts_with("router did not answer in 100 ms; by load only: "));
  CHECK(router.queries == 1);
  CHECK(g.metric("infernex_gateway_route_fallbacks_total") == 1);
}

TEST_CASE("no router at all, and one that knows no engine") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  CHECK(header(g.chat(), "x-infernex-decision").starts_with("no router is on the bus; by load only: "));
  fake_router router(*g.outside, {});
  const auto answer = g.chat();
  CHECK(answer.status == 200);
  CHECK(header(answer, "x-infernex-decision")
            .starts_with("router named no engine (no engine of this model is ready); by load only: "));
}

TEST_CASE("without NATS chat goes on by load") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  g.nats.kill();
  REQUIRE(eventually(
      [&] { return header(g.chat(), "x-infernex-decision").starts_with("the bus is down; by load only: "); }));
  CHECK(g.get("/readyz").status == 200);
  g.nats.restart();
  REQUIRE(eventually([&] { return g.outside->connected(); }));
  fake_router router(*g.outside, {{"e0", e0.url()}});
  CHECK(eventually([&] { return header(g.chat(), "x-infernex-decision").starts_with("kv-aware: test"); }));
}

TEST_CASE("requests of one moment share a query, and each gets its own answer") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  g.chat();  // the prompt's keys are in the cache of the first thread at least
  constexpr unsigned count = 32;
  std::vector<raw_socket> sockets;
  for (unsigned i = 0; i < count; ++i) sockets.push_back(g.socket());
  for (auto& socket : sockets) REQUIRE(socket.send(gateway_fixture::chat_bytes()));
  for (auto& socket : sockets) CHECK(socket.read_response().starts_with("HTTP/1.1 200 OK"));
  CHECK(router.items == count + 1);
  CHECK(router.queries <= count + 1);
}

TEST_CASE("embedded: the index in the process decides") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  const auto index = std::make_shared<indexer::index_set>();
  std::vector<std::uint32_t> tokens(33);
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto keys = engine::chain_keys({"m", "", "", 16}, tokens, 2);
  const auto of_model = index->obtain("m");
  REQUIRE(of_model->add_instance("e1"));
  of_model->add("e1", keys);
  gateway::settings how;
  how.router = gateway::router_mode::embedded;
  how.policy.strategy = "kv-aware";
  gateway_fixture g(how, index);
  g.kv_health = fb::KvHealth::Live;
  g.add({&e0, &e1});
  for (int i = 0; i < 4; ++i) {
    const auto answer = g.chat();
    CHECK(answer.status == 200);
    CHECK(header(answer, "x-infernex-endpoint") == "e1");
  }
  CHECK(g.metric("infernex_gateway_predicted_cached_tokens_total{by=\"index\"}") == 4 * 32);
  CHECK(g.metric("infernex_gateway_route_fallbacks_total") == 0);
}

TEST_CASE("embedded needs an index") {
  nats_server nats;
  metrics_registry metrics;
  bus_settings to;
  to.url = nats.url();
  auto bus = bus::connect(to, metrics);
  REQUIRE(bus.ok());
  actor_config config;
  caf::actor_system system(config);
  gateway::settings how;
  how.router = gateway::router_mode::embedded;
  how.port = 0;
  const auto started = gateway::start({system, **bus, metrics, "test", 1, {}}, how, nullptr);
  REQUIRE_FALSE(started.ok());
  CHECK(started.failure().code == errc::invalid_config);
}

TEST_CASE("routers are told what is in flight, and what has ended") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.kv_health = fb::KvHealth::Live;
  std::mutex guard;
  std::vector<std::unique_ptr<fb::RequestLifeT>> seen;
  auto listening = g.outside->subscribe(g.outside->names().any_request_life(), {lane::stream, {}, 1024},
                                        [&](inbound<fb::RequestLife>&& m) {
                                          const std::lock_guard lock(guard);
                                          seen.emplace_back(m.message->UnPack());
                                        });
  REQUIRE(listening.ok());
  const auto some = [&](auto condition) {
    return eventually([&] {
      const std::lock_guard lock(guard);
      return std::any_of(seen.begin(), seen.end(), [&](const auto& m) { return condition(*m); });
    });
  };
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url(), 2}});
  e0.answers = behaviour::hang;
  auto socket = g.socket();
  REQUIRE(socket.send(gateway_fixture::chat_bytes()));
  CHECK(some([](const fb::RequestLifeT& m) {
    return m.model == "m" && m.origin->id == "gateway/test-1" && m.origin->epoch == 42 && m.in_flight.size() == 1 &&
           m.in_flight[0]->instance == "e0" && m.in_flight[0]->requests == 1 && m.in_flight[0]->prefill_tokens == 1 &&
           m.in_flight[0]->blocks == 3 && m.started.size() == 1;
  }));
  socket.close();
  CHECK(some([](const fb::RequestLifeT& m) {
    return m.finished.size() == 1 && m.finished[0]->outcome == fb::Outcome::ClientGone &&
           m.finished[0]->instance == "e0" && m.in_flight.size() == 1 && m.in_flight[0]->requests == 0;
  }));
  e0.answers = behaviour::stream;
  CHECK(g.chat(R"(,"stream":true)").status == 200);
  CHECK(some([](const fb::RequestLifeT& m) {
    return m.finished.size() == 1 && m.finished[0]->outcome == fb::Outcome::Completed && m.finished[0]->status == 200 &&
           m.finished[0]->prompt_tokens == 33U && m.finished[0]->cached_tokens == 32U &&
           m.finished[0]->predicted_cached_tokens == 32U && m.finished[0]->ttft_ms.has_value();
  }));
}
