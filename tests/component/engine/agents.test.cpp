// Engines that come and go while the process runs, followed for their KV events alone.

#include "actors/engine/agents.hpp"

#include <numeric>

#include <doctest/doctest.h>

#include "actors/engine/block_key.hpp"
#include "actors/runtime/caf.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "tests/component/engine/index_follower.hpp"
#include "tests/component/engine/scripted_engine.hpp"
#include "tests/support/wait.hpp"

namespace {

using namespace infernex;
using namespace std::chrono_literals;
using test::eventually;

constexpr std::uint32_t block_size = 4;

std::vector<std::uint8_t> stored(std::uint64_t hash, std::uint32_t token, std::size_t blocks) {
  auto w = test::batch_of(1);
  test::write_stored(w, test::tokens_from(hash, blocks), std::nullopt, test::tokens_from(token, blocks * block_size),
                     block_size);
  return w.number(0).bytes();
}

struct fixture {
  fixture() {
    log::configure(log::level::off, "test");
    auto started = engine::start_agents(host, {}, {.max_added = 2, .max_names = 3});
    REQUIRE(started);
    agents = *std::move(started);
  }
  ~fixture() { agents->stop(5s); }

  std::unique_ptr<bus> connect() {
    bus_settings where;
    where.url = server.url();
    auto made = bus::connect(where, metrics);
    REQUIRE(made);
    return *std::move(made);
  }
  engine::engine_descriptor described(const std::string& instance) const {
    engine::engine_descriptor e;
    e.instance = instance;
    e.model = "org/model@tenant:acme";
    e.kv_events = engine.events();
    e.kv_replay = engine.replay();
    return e;
  }
  fb::EngineState state() {
    return index.with([](const auto& s) { return s.announced.state; });
  }

  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> messages = connect();
  actor_config config;
  caf::actor_system system{config};
  test::scripted_engine engine;
  test::index_follower index{*messages};
  runtime host{system, *messages, metrics, "test", 1'000};
  std::unique_ptr<engine::agents> agents;
};

TEST_CASE_FIXTURE(fixture, "an engine without a URL is followed from its first event, and is not to be routed to") {
  engine.publish(stored(1, 0, 3));
  REQUIRE(agents->add(described("e0")).code == errc::none);
  std::vector<std::uint32_t> tokens(3 * block_size);
  std::iota(tokens.begin(), tokens.end(), 0u);
  const auto keys = engine::chain_keys({"org/model@tenant:acme", "", "", block_size}, tokens, 3);
  CHECK(eventually([&] { return index.keys() == std::set<std::uint64_t>(keys.begin(), keys.end()); }));
  CHECK(eventually([&] { return index.kv_health() == fb::KvHealth::Live; }));
  CHECK(state() == fb::EngineState::Draining);
  engine.publish(stored(50, 1000, 2));
  CHECK(eventually([&] { return index.keys().size() == 5; }));

  CHECK(agents->remove("e0"));
  CHECK(eventually([&] { return state() == fb::EngineState::Down; }));
  CHECK_FALSE(agents->remove("e0"));
  // Again under the same name: a newer epoch than that of its end.
  REQUIRE(agents->add(described("e0")).code == errc::none);
  CHECK(eventually([&] { return state() == fb::EngineState::Draining; }));
}

TEST_CASE_FIXTURE(fixture, "what cannot be followed is refused, and there is a bound") {
  auto bad = described("e0");
  bad.kv_events = "tcp://*:5557";
  CHECK(agents->add(bad).code == errc::invalid_request);
  bad = described("e0");
  bad.model.clear();
  CHECK(agents->add(bad).code == errc::invalid_request);
  REQUIRE(agents->add(described("e0")).code == errc::none);
  CHECK(agents->add(described("e0")).code == errc::invalid_request);
  REQUIRE(agents->add(described("e1")).code == errc::none);
  CHECK(agents->add(described("e2")).code == errc::overloaded);
  CHECK(agents->remove("e1"));
  REQUIRE(agents->add(described("e2")).code == errc::none);
  CHECK(agents->remove("e2"));
  // A fourth name would be one too many for the metrics; a known one is not.
  CHECK(agents->add(described("e3")).code == errc::overloaded);
  CHECK(agents->add(described("e1")).code == errc::none);
}

}  // namespace
