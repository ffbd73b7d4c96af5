#include <algorithm>

#include <doctest/doctest.h>

#include "actors/engine/actor.hpp"
#include "actors/engine/block_key.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "tests/component/engine/index_follower.hpp"
#include "tests/component/engine/scripted_engine.hpp"
#include "tests/support/wait.hpp"

namespace {

using namespace infernex;
using namespace std::chrono_literals;
using test::eventually;
using state = fb::EngineState;

constexpr std::uint32_t block_size = 4;

std::set<std::uint64_t> keys_of(std::uint32_t token, std::size_t blocks, std::uint32_t size = block_size) {
  std::vector<std::uint32_t> tokens(blocks * size);
  for (std::uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = token + i;
  const auto keys = engine::chain_keys({"org/model", "", "", size}, tokens, blocks);
  return {keys.begin(), keys.end()};
}

/// A batch of one event: `blocks` blocks of a prompt that starts with `token`; hashes count from `hash`.
std::vector<std::uint8_t> stored(std::uint64_t hash, std::uint32_t token, std::size_t blocks) {
  auto w = test::batch_of(1);
  test::write_stored(w, test::tokens_from(hash, blocks), std::nullopt, test::tokens_from(token, blocks * block_size),
                     block_size);
  return w.number(0).bytes();
}
std::vector<std::uint8_t> removed(const std::vector<std::uint64_t>& hashes) {
  auto w = test::batch_of(1);
  test::write_removed(w, hashes);
  return w.number(0).bytes();
}

std::set<std::uint64_t> united(std::set<std::uint64_t> a, const std::set<std::uint64_t>& b) {
  a.insert(b.begin(), b.end());
  return a;
}

/// A NATS server, one scripted engine and a follower; the agent starts when a test says so.
struct fixture {
  explicit fixture(bool topic_in_replay = true) : engine(topic_in_replay) { log::configure(log::level::off, "test"); }
  ~fixture() { stop_agent(); }

  std::unique_ptr<bus> connect() {
    bus_settings where;
    where.url = server.url();
    where.reconnect_wait = 20ms;
    auto made = bus::connect(where, metrics);
    REQUIRE(made.ok());
    return *std::move(made);
  }
  void start_agent(engine::settings with = {}) {
    auto& e = with.engines.emplace_back();
    e.instance = "e0";
    e.url = engine.url();
    e.kv_events = engine.events();
    e.kv_replay = engine.replay();
    e.node = "node-1";
    with.announce_interval = 300ms;
    host.emplace(runtime{system, *messages, metrics, "test", ++epoch});
    auto started = engine::start(*host, with);
    REQUIRE(started.ok());
    agent = *std::move(started);
  }
  void stop_agent() {
    if (agent) agent->stop(5s);
    agent.reset();
  }
  void wait_for_live() {
    REQUIRE(eventually([this] { return index.state() == state::Ready && index.kv_health() == fb::KvHealth::Live; }));
  }
  double counted(const std::string& name, metrics_registry::labels with) {
    with["instance"] = "e0";
    return metrics.counter(name, "", with).Value();
  }

  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> messages = connect();
  actor_config config;
  caf::actor_system system{config};
  test::scripted_engine engine;
  test::index_follower index{*messages};
  std::uint64_t epoch = 1'000;
  std::optional<runtime> host;
  std::unique_ptr<role> agent;
};

struct old_framing : fixture {
  old_framing() : fixture(false) {}
};

TEST_CASE_FIXTURE(fixture, "announcements, deltas and snapshots say the same, exactly") {
  engine.http().running = 3;
  engine.publish(stored(1, 0, 3));  // before the agent came: by replay
  start_agent();
  wait_for_live();
  engine.publish(stored(50, 1000, 2));
  engine.publish(removed({3}));
  auto expected = united(keys_of(0, 2), keys_of(1000, 2));
  CHECK(eventually([&] { return index.keys() == expected; }));
  CHECK(index.exact());
  // The regular announcement carries the figures of the last delta.
  CHECK(eventually([&] {
    return index.with([](const auto& f) {
      return f.announced.kv_sequence == f.sequence && f.announced.kv_keys == 4 &&
             f.announced.kv_digest == f.figures_digest;
    });
  }));
  const auto announced = index.with([](const auto& f) { return fb::EngineAnnounceT(f.announced); });
  CHECK(announced.model == "org/model");
  CHECK(announced.instance == "e0");
  CHECK(announced.url == engine.url());
  CHECK(announced.node == "node-1");
  CHECK(announced.block_size == block_size);
  CHECK(announced.max_model_len == 4096U);
  CHECK(announced.origin->id == "agent/e0");
  CHECK(announced.origin->epoch == 1'001);
  CHECK(eventually([&] { return index.with([](const auto& f) { return f.loads > 1 && f.load.running == 3U; }); }));
  CHECK(index.with([](const auto& f) { return f.load.kv_usage == 0.5 && !f.load.waiting.has_value(); }));

  index.ask_snapshot("org/model", "e0");
  REQUIRE(eventually([&] { return index.last_snapshot().complete; }));
  CHECK(index.last_snapshot().keys == expected);
  CHECK(index.last_snapshot().as_of == index.with([](const auto& f) { return f.sequence; }));
}

TEST_CASE_FIXTURE(fixture, "tiers and another block size: offloaded without tokens, mapped to canonical blocks") {
  const auto offloaded = [](const std::vector<std::uint64_t>& hashes) {
    auto w = test::batch_of(1);
    w.array(8).text("BlockStored").numbers(hashes).nil().numbers({}).number(0).nil().text("CPU").nil();
    return w.number(0).bytes();
  };
  engine::settings with;
  with.canonical_block_size = 2 * block_size;
  start_agent(with);
  wait_for_live();
  engine.publish(stored(1, 0, 5));
  engine.publish(offloaded({1, 2, 3}));
  const auto two = keys_of(0, 2, 2 * block_size);
  const auto first = *keys_of(0, 1, 2 * block_size).begin();
  CHECK(
      eventually([&] { return index.with([&](const auto& f) { return f.keys == two && f.elsewhere.size() == 1; }); }));
  CHECK(index.with([&](const auto& f) { return f.elsewhere.contains({fb::KvTier::Host, first}) && f.closed; }));
  CHECK(index.exact());
  CHECK(eventually([&] { return index.with([](const auto& f) { return f.announced.kv_keys == 3; }); }));
  CHECK(index.with([](const auto& f) { return f.announced.block_size == 2 * block_size; }));
  CHECK(index.with([](const auto& f) { return f.announced.engine_block_size == block_size; }));

  engine.publish(removed({1}));
  CHECK(eventually([&] { return index.keys().size() == 1; }));
  CHECK_FALSE(index.with([](const auto& f) { return f.closed; }));
  index.ask_snapshot("org/model", "e0");
  REQUIRE(eventually([&] { return index.last_snapshot().complete; }));
  CHECK(index.last_snapshot().keys == index.keys());
  CHECK(index.last_snapshot().elsewhere.size() == 1);
  CHECK_FALSE(index.last_snapshot().closed);
  CHECK(eventually(
      [&] { return metrics.render().find("infernex_agent_mirror_bytes{instance=\"e0\"}") != std::string::npos; }));
}

TEST_CASE_FIXTURE(fixture, "a hundred thousand blocks travel in messages under 512 KiB, exactly") {
  std::set<std::uint64_t> expected;
  for (std::uint32_t prompt = 0; prompt < 100; ++prompt) {
    engine.publish(stored(prompt * 10'000, prompt * 100'000, 1000));
    expected.merge(keys_of(prompt * 100'000, 1000));
  }
  start_agent();
  CHECK(eventually([&] { return index.with([](const auto& f) { return f.keys.size() == 100'000; }); }, 60s));
  CHECK(index.keys() == expected);
  CHECK(index.exact());
  index.ask_snapshot("org/model", "e0");
  REQUIRE(eventually([&] { return index.last_snapshot().complete; }));
  CHECK(index.last_snapshot().chunks == 2);
  CHECK(index.last_snapshot().largest < 512 * 1024);
  CHECK(index.last_snapshot().keys == expected);
}

TEST_CASE_FIXTURE(fixture,
                  "a loading engine is announced as starting only once its model is known, and nothing else disturbs") {
  engine.http().health = 503;
  start_agent();
  CHECK(eventually(
      [&] { return metrics.render().find("infernex_agent_engine_ready{instance=\"e0\"} 0") != std::string::npos; }));
  CHECK(index.with([](const auto& f) { return f.announcements; }) == 0);
  engine.http().health = 200;
  wait_for_live();
  engine.http().health = 503;
  CHECK(eventually([&] { return index.state() == state::Starting; }));
  engine.http().health = 200;
  wait_for_live();
}

TEST_CASE_FIXTURE(fixture, "a bad event, a truncated batch: counted, the rest goes on") {
  start_agent();
  wait_for_live();
  auto mixed = test::batch_of(3);
  test::write_stored(mixed, {1}, std::nullopt, test::tokens_from(0, block_size), block_size);
  mixed.array(2).text("BlockStored").text("nonsense");
  test::write_stored(mixed, {2}, 1, test::tokens_from(block_size, block_size), block_size);
  engine.publish(mixed.number(0).bytes());
  CHECK(eventually([&] { return index.keys() == keys_of(0, 2); }));
  CHECK(eventually([&] { return index.kv_health() == fb::KvHealth::Partial; }));
  auto truncated = stored(7, 500, 1);
  truncated.resize(truncated.size() / 2);
  engine.publish(truncated);
  engine.publish(stored(9, 900, 1));
  CHECK(eventually([&] { return index.keys() == united(keys_of(0, 2), keys_of(900, 1)); }));
  CHECK(index.exact());
  CHECK(counted("infernex_agent_events_dropped_total", {{"reason", "malformed_event"}}) == 1);
  CHECK(counted("infernex_agent_events_dropped_total", {{"reason", "malformed_batch"}}) == 1);
}

TEST_CASE_FIXTURE(fixture, "lost batches are repaired by replay, the last one too") {
  start_agent();
  wait_for_live();
  engine.publish(stored(1, 0, 2));
  engine.publish(stored(10, 100, 2), true);
  engine.publish(removed({1, 2}), true);
  engine.publish(stored(20, 200, 2));  // shows the gap
  const auto repaired = united(keys_of(100, 2), keys_of(200, 2));
  CHECK(eventually([&] { return index.keys() == repaired; }));
  CHECK(eventually([&] { return index.kv_health() == fb::KvHealth::Live; }));
  CHECK(index.with([](const auto& f) { return f.clears; }) == 1);  // the first one, at the start
  engine.publish(stored(30, 300, 1), true);                        // nothing follows: only a check finds it
  CHECK(eventually([&] { return index.keys() == united(repaired, keys_of(300, 1)); }));
  CHECK(index.exact());
}

TEST_CASE_FIXTURE(old_framing, "replays without a topic frame, as engines before vLLM 0.26 send them") {
  engine.publish(stored(1, 0, 3));
  start_agent();
  wait_for_live();
  engine.publish(stored(5, 100, 1), true);
  engine.publish(stored(6, 200, 1));
  CHECK(eventually([&] { return index.keys() == united(united(keys_of(0, 3), keys_of(100, 1)), keys_of(200, 1)); }));
}

TEST_CASE_FIXTURE(fixture,
                  "history that the engine has forgotten: the set lacks blocks, is never wrong, and is partial") {
  engine.publish(stored(1, 0, 2));
  engine.publish(stored(10, 100, 2));
  engine.forget(1);
  start_agent();
  CHECK(eventually([&] { return index.kv_health() == fb::KvHealth::Partial; }));
  CHECK(eventually([&] { return index.keys() == keys_of(100, 2); }));
}

TEST_CASE_FIXTURE(
    fixture, "an engine that is killed is down within a second; back, it has a new epoch and none of its old blocks") {
  engine.publish(stored(1, 0, 3));
  start_agent();
  wait_for_live();
  CHECK(eventually([&] { return index.keys() == keys_of(0, 3); }));
  const auto before = index.with([](const auto& f) { return f.announced.engine_epoch.value_or(0); });

  engine.kill();
  const auto killed_at = std::chrono::steady_clock::now();
  CHECK(eventually([&] { return index.state() == state::Down; }, 5s));
  const auto took = std::chrono::steady_clock::now() - killed_at;
  MESSAGE("down after " << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms");
  CHECK(took < 1s);

  engine.start();
  CHECK(eventually([&] { return index.state() == state::Ready; }));
  CHECK(eventually([&] { return index.keys().empty(); }));
  CHECK(index.with([](const auto& f) { return f.announced.engine_epoch.value_or(0); }) > before);
  wait_for_live();
  engine.publish(stored(1, 700, 2));
  CHECK(eventually([&] { return index.keys() == keys_of(700, 2); }));
  CHECK(index.exact());
}

TEST_CASE_FIXTURE(fixture, "a restart that no probe sees shows in the process's start time") {
  engine.http().process_start = 1.7634e9;
  engine.publish(stored(1, 0, 3));
  start_agent();
  wait_for_live();
  CHECK(eventually([&] { return index.keys() == keys_of(0, 3); }));
  engine.kill();
  engine.start();
  engine.http().process_start = 1.7635e9;
  engine.publish(stored(4, 300, 1));
  CHECK(eventually([&] { return index.keys() == keys_of(300, 1); }));
  CHECK(index.exact());
}

TEST_CASE_FIXTURE(fixture, "an agent that is restarted replays its engine and ends with the same set") {
  engine.publish(stored(1, 0, 3));
  start_agent();
  wait_for_live();
  engine.publish(stored(7, 100, 3));
  const auto expected = united(keys_of(0, 3), keys_of(100, 3));
  CHECK(eventually([&] { return index.keys() == expected; }));
  stop_agent();
  engine.publish(removed({9}));
  start_agent();
  auto less = keys_of(0, 3);
  less.merge(keys_of(100, 2));
  CHECK(eventually([&] {
    return index.keys() == less && index.with([](const auto& f) { return f.announced.origin->epoch; }) == 1'002;
  }));
}

TEST_CASE_FIXTURE(fixture, "after the bus was away the agent announces again, and its figures are right") {
  start_agent();
  wait_for_live();
  server.kill();
  REQUIRE(eventually([&] { return !messages->connected(); }));
  engine.publish(stored(1, 0, 3));
  server.restart();
  REQUIRE(eventually([&] { return messages->connected(); }));
  CHECK(eventually([&] { return index.with([](const auto& f) { return f.announced.kv_keys; }) == 3; }));
  index.ask_snapshot("org/model", "e0");
  REQUIRE(eventually([&] { return index.last_snapshot().complete; }));
  CHECK(index.last_snapshot().keys == keys_of(0, 3));
}

TEST_CASE_FIXTURE(fixture, "a list of engines with mistakes is refused with all of them") {
  engine::settings with;
  with.engines.resize(2);
  with.engines[1].instance = "e1";
  with.engines[1].url = "nowhere";
  host.emplace(runtime{system, *messages, metrics, "test", 1});
  const auto refused = engine::start(*host, with);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().code == errc::invalid_config);
  CHECK(refused.failure().detail.find("engines[0].instance") != std::string::npos);
  CHECK(refused.failure().detail.find("engines[1].url") != std::string::npos);
}

}  // namespace
