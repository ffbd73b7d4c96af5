// An indexer over a real nats-server, with agents that exist on the bus only.

#include <future>
#include <map>
#include <numeric>
#include <sstream>

#include <boost/asio/ip/tcp.hpp>
#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "actors/indexer/actor.hpp"
#include "tests/component/indexer/fake_agent.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::fake_agent;

std::unique_ptr<bus> connect(const test::nats_server& server, metrics_registry& metrics) {
  bus_settings how;
  how.url = server.url();
  how.reconnect_wait = 50ms;
  auto made = bus::connect(how, metrics);
  REQUIRE(made);
  return *std::move(made);
}

std::vector<std::uint64_t> range(std::uint64_t from, std::size_t count) {
  std::vector<std::uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), from);
  return keys;
}

struct answer {
  std::map<std::string, std::uint32_t> overlaps;
  struct cover {
    bool exact = false;
    std::uint64_t sequence = 0;
    std::uint64_t keys = 0;
  };
  std::map<std::string, cover> coverage;
};

/// A nats-server, the agents' and askers' own connection, and an indexer that can be started and stopped.
struct setup {
  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> outside = connect(server, metrics);
  std::unique_ptr<bus> inside = connect(server, metrics);
  actor_config config;
  caf::actor_system system{config};
  runtime process{system, *inside, metrics, "test-1", 1};
  std::uint16_t port = test::free_port();
  std::unique_ptr<role> indexer;
  std::uint64_t probes = 0;

  setup() { start(); }
  ~setup() {
    stop();
    outside->close(1s);
    inside->close(1s);
  }
  void start() {
    indexer::settings how;
    how.admin_port = port;
    how.tracking.sync.patience = 200ms;
    how.tracking.sync.answer_timeout = 300ms;
    auto made = indexer::start(process, how, std::make_shared<indexer::index_set>(how.index));
    REQUIRE(made);
    indexer = *std::move(made);
    // Its subscriptions travel on two connections: both are there once a delta has arrived.
    fake_agent probe(*outside, "probe", "p", ++probes);
    std::uint64_t key = 0;
    REQUIRE(eventually([&] {
      probe.change({}, {++key});
      const auto a = ask("probe", {});
      return a && !a->coverage.empty();
    }));
  }
  void stop() {
    if (indexer) indexer->stop(2s);
    indexer.reset();
  }

  std::optional<answer> ask(const std::string& model, const std::vector<std::uint64_t>& chain) {
    fb::KvMatchQueryT query;
    query.model = model;
    query.chains.push_back(std::make_unique<fb::KvChainT>());
    query.chains[0]->keys = chain;
    auto done = std::make_shared<std::promise<std::optional<answer>>>();
    auto future = done->get_future();
    outside->request<fb::KvMatchReply>(outside->names().kv_match(model), encode(query), 2s,
                                       [done](result<view<fb::KvMatchReply>>&& reply) {
                                         if (!reply) return done->set_value(std::nullopt);
                                         answer a;
                                         const auto unpacked = std::unique_ptr<fb::KvMatchReplyT>((**reply).UnPack());
                                         for (const auto& o : unpacked->matches.at(0)->overlaps)
                                           a.overlaps[o->instance] = o->blocks;
                                         for (const auto& c : unpacked->coverage)
                                           a.coverage[c->instance] = {c->exact, c->sequence, c->keys};
                                         done->set_value(a);
                                       });
    if (future.wait_for(5s) != std::future_status::ready) return std::nullopt;
    return future.get();
  }
  /// Whether the index says that it equals this agent's mirror, at its newest sequence.
  bool exact(const std::string& model, const std::string& instance, fake_agent& agent) {
    const auto a = ask(model, {});
    if (!a || !a->coverage.contains(instance)) return false;
    const auto& c = a->coverage.at(instance);
    return c.exact && c.sequence == agent.sequence() && c.keys == agent.keys();
  }
  std::string get(const std::string& path) const {
    boost::asio::ip::tcp::iostream connection("127.0.0.1", std::to_string(port));
    connection << "GET " << path << " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n" << std::flush;
    std::ostringstream all;
    all << connection.rdbuf();
    return all.str();
  }
  /// The value of a line of /metrics, or -1.
  double metric(const std::string& line) const {
    const auto page = get("/metrics");
    const auto at = page.find("\n" + line + " ");
    return at == std::string::npos ? -1 : std::stod(page.substr(at + line.size() + 2));
  }
};

TEST_CASE("deltas make the index exact, and match queries are answered from it") {
  setup s;
  fake_agent first(*s.outside, "m/x", "e.0");
  fake_agent second(*s.outside, "m/x", "e.1");
  // Announced first, so that the indexer is known to listen before the deltas flow.
  REQUIRE(eventually([&] {
    first.announce();
    second.announce();
    return s.exact("m/x", "e.0", first) && s.exact("m/x", "e.1", second);
  }));
  first.change({}, range(1, 20));
  first.change({15}, {100});
  second.change({}, range(1, 5));
  REQUIRE(eventually([&] { return s.exact("m/x", "e.0", first) && s.exact("m/x", "e.1", second); }));
  const auto found = s.ask("m/x", range(1, 20));
  REQUIRE(found);
  CHECK(found->overlaps == std::map<std::string, std::uint32_t>{{"e.0", 14}, {"e.1", 5}});
  CHECK(first.snapshots() == 0);
  const auto nothing = s.ask("another model", range(1, 3));
  REQUIRE(nothing);
  CHECK(nothing->overlaps.empty());
  CHECK(nothing->coverage.empty());
}

TEST_CASE("an indexer started late gets 100,000 blocks by snapshot") {
  setup s;
  s.stop();
  fake_agent agent(*s.outside, "m", "e0");
  agent.change({}, range(1, 100'000), fake_agent::fate::lost);
  const auto began = std::chrono::steady_clock::now();
  s.start();
  auto next_announcement = began;
  REQUIRE(eventually([&] {
    if (std::chrono::steady_clock::now() >= next_announcement) {
      agent.announce();
      next_announcement += 200ms;
    }
    return s.exact("m", "e0", agent);
  }));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  MESSAGE("100,000 blocks exact after " << took.count() << " ms");
  CHECK(s.ask("m", range(1, 1'000))->overlaps == std::map<std::string, std::uint32_t>{{"e0", 1'000}});
}

TEST_CASE("lost deltas, a new engine process, a restarted agent: exact again each time") {
  setup s;
  fake_agent agent(*s.outside, "m", "e0");
  REQUIRE(eventually([&] {
    agent.announce();
    return s.exact("m", "e0", agent);
  }));
  agent.change({}, range(1, 50));
  REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));

  SUBCASE("a lost delta shows with the next one") {
    agent.change({1}, {}, fake_agent::fate::lost);
    agent.change({}, {200});
    REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));
    CHECK(s.ask("m", range(1, 50))->overlaps.empty());
    CHECK(agent.snapshots() >= 1);
  }
  SUBCASE("a lost last delta shows with the announcement") {
    agent.change({1}, {}, fake_agent::fate::lost);
    agent.announce();
    REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));
    CHECK(s.ask("m", range(1, 50))->overlaps.empty());
  }
  SUBCASE("a new engine process") {
    agent.new_engine();
    agent.announce();
    REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));
    CHECK(s.ask("m", range(1, 50))->overlaps.empty());
    CHECK(agent.snapshots() == 0);
  }
  SUBCASE("an engine that is down holds nothing, and gets its blocks back when it was only out of sight") {
    agent.announce(fb::EngineState::Down);
    REQUIRE(eventually([&] { return s.ask("m", range(1, 50))->overlaps.empty(); }));
    agent.announce();
    REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));
    CHECK(s.ask("m", range(1, 50))->overlaps.at("e0") == 50);
  }
  SUBCASE("a restarted agent") {
    agent.restart();
    agent.change({}, range(10, 5));
    agent.announce();
    REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));
    CHECK(s.ask("m", range(1, 50))->overlaps.empty());
    CHECK(s.ask("m", range(10, 50))->overlaps.at("e0") == 5);
  }
}

TEST_CASE("a nats-server that is killed and comes back: what was missed is repaired") {
  setup s;
  fake_agent agent(*s.outside, "m", "e0");
  REQUIRE(eventually([&] {
    agent.announce();
    return s.exact("m", "e0", agent);
  }));
  agent.change({}, range(1, 50));
  REQUIRE(eventually([&] { return s.exact("m", "e0", agent); }));
  s.server.kill();
  REQUIRE(eventually([&] { return !s.outside->connected() && !s.inside->connected(); }));
  agent.change({1}, range(500, 10), fake_agent::fate::lost);
  s.server.restart();
  REQUIRE(eventually([&] { return s.outside->connected() && s.inside->connected(); }));
  auto next_announcement = std::chrono::steady_clock::now();
  REQUIRE(eventually([&] {
    if (std::chrono::steady_clock::now() >= next_announcement) {
      agent.announce();
      next_announcement += 200ms;
    }
    return s.exact("m", "e0", agent);
  }));
  CHECK(s.ask("m", range(2, 49))->overlaps.at("e0") == 49);
  CHECK(s.ask("m", range(500, 10))->overlaps.at("e0") == 10);
}

TEST_CASE("GET /v1/index shows the index; the common pages are there, others are refused") {
  setup s;
  fake_agent agent(*s.outside, "m", "e0");
  REQUIRE(eventually([&] {
    agent.announce();
    return s.exact("m", "e0", agent);
  }));
  agent.change({}, {3, 5});
  boost::json::value shown;
  REQUIRE(eventually([&] {
    const auto page = s.get("/v1/index");
    const auto body = page.find("\r\n\r\n");
    if (body == std::string::npos) return false;
    shown = boost::json::parse(page.substr(body + 4));
    const auto& models = shown.at("models").as_array();
    return models.size() == 2 && models[0].at("instances").at(0).at("sequence").to_number<int>() == 1;
  }));
  const auto& model = shown.at("models").at(0);
  CHECK(model.at("model") == "m");
  CHECK(model.at("distinct_keys").to_number<int>() == 2);
  const auto& instance = model.at("instances").at(0);
  CHECK(instance.at("instance") == "e0");
  CHECK(instance.at("keys").to_number<int>() == 2);
  CHECK(instance.at("digest") == "0000000000000006");
  CHECK(instance.at("exact") == true);
  CHECK(instance.at("agent_epoch").to_number<int>() == 1'000);
  CHECK(instance.at("engine_epoch").to_number<int>() == 77);
  CHECK(instance.at("age_ms").to_number<int>() < 10'000);
  CHECK(s.get("/healthz").find(" 200 ") != std::string::npos);
  CHECK(s.get("/readyz").find(" 200 ") != std::string::npos);
  CHECK(s.get("/elsewhere").find(" 404 ") != std::string::npos);
  const auto applied = "infernex_indexer_deltas_total{outcome=\"applied\"}";
  CHECK(eventually([&] { return s.metric(applied) >= 2 && s.metric("infernex_indexer_exact_sources") >= 1; }));
  CHECK(s.metric("infernex_indexer_sources") == 2);
  CHECK(s.metric("infernex_indexer_keys") >= 3);
  CHECK(s.metric("infernex_indexer_lookup_seconds_count") >= 1);
}

}  // namespace
}  // namespace infernex
