#include <set>

#include "actors/router/plugins/engine_ring.hpp"
#include "tests/unit/router/peer_table.hpp"

namespace infernex::router {
namespace {

/// By looking at every point of every engine.
std::string on_ring(std::uint64_t hash, const std::vector<std::string>& engines, unsigned points = 150) {
  std::uint64_t best = ~std::uint64_t{0}, first = ~std::uint64_t{0};
  std::string found, around;
  for (const auto& name : engines)
    for (unsigned i = 0; i < points; ++i) {
      const auto at = plugins::engine_rings::hash_of(name + "#" + std::to_string(i));
      if (at >= hash && at <= best) best = at, found = name;
      if (at <= first) first = at, around = name;
    }
  return found.empty() ? around : found;
}

TEST_CASE("a ring: the next point round, for any hash; made anew only when the engines are others") {
  peer_table t(4);
  std::vector<spec_problem> problems;
  const boost::json::object given;
  parameters p(given, "", problems);
  plugins::engine_rings rings(p);
  std::vector<candidate> all;
  const auto first = [&](std::uint64_t hash) {
    std::vector<std::uint32_t> order;
    rings.rank(t.of, all, hash, 1, order);
    return all[order.front()].to->instance;
  };
  for (const auto& e : t.of.endpoints) all.push_back({&e, {}});
  for (std::uint64_t n = 0; n < 200; ++n) {
    const auto hash = plugins::engine_rings::hash_of(n);
    CHECK(first(hash) == on_ring(hash, {"e0", "e1", "e2", "e3"}));
  }
  CHECK(first(0) == on_ring(0, {"e0", "e1", "e2", "e3"}));
  CHECK(first(~std::uint64_t{0}) == on_ring(~std::uint64_t{0}, {"e0", "e1", "e2", "e3"}));
  CHECK(rings.rebuilt() == 1);
  // One that cannot take it is passed by, and keeps its place.
  all.erase(all.begin() + 1);
  for (std::uint64_t n = 0; n < 200; ++n) {
    const auto hash = plugins::engine_rings::hash_of(n);
    CHECK(first(hash) == on_ring(hash, {"e0", "e2", "e3"}));
  }
  CHECK(rings.rebuilt() == 1);
  std::vector<std::uint32_t> order;
  rings.rank(t.of, all, 1, 10, order);
  CHECK(std::set<std::uint32_t>(order.begin(), order.end()) == std::set<std::uint32_t>{0, 1, 2});
  // The same addresses, other engines.
  t.of.endpoints[3].instance = "e4";
  const auto hash = plugins::engine_rings::hash_of("a key");
  CHECK(first(hash) == on_ring(hash, {"e0", "e2", "e4"}));
  CHECK(rings.rebuilt() == 2);
  for (std::size_t i = 0; i < 2 * plugins::engine_rings::max_models; ++i) {
    t.of.model = "m" + std::to_string(i);
    CHECK(first(hash) == on_ring(hash, {"e0", "e2", "e4"}));
  }
}

TEST_CASE("consistent hashing: a key keeps its engine, and others' comings and goings move few keys") {
  peer_table t(3);
  t.use({{"", "consistent-hashing-picker", {}}});
  std::vector<std::string> keys;
  for (int i = 0; i < 3'000; ++i) keys.push_back("session-" + std::to_string(i));
  const auto chosen = [&](const std::string& key) {
    t.headers = {{"x-smg-routing-key", key}};
    return t.chosen();
  };
  std::map<std::string, int> times;
  std::vector<std::string> before;
  for (const auto& key : keys) ++times[before.emplace_back(chosen(key))];
  for (const auto& [engine, n] : times) CHECK(n == doctest::Approx(1'000).epsilon(0.3));
  CHECK(times.size() == 3);
  CHECK(before[7] == on_ring(plugins::engine_rings::hash_of(keys[7]), {"e0", "e1", "e2"}));
  for (std::size_t i = 0; i < keys.size(); i += 7) CHECK(chosen(keys[i]) == before[i]);
  t.of.endpoints[1].state = fb::EngineState::Down;
  for (std::size_t i = 0; i < keys.size(); i += 3)
    if (before[i] != "e1") CHECK(chosen(keys[i]) == before[i]);
  t.of.endpoints[1].state = fb::EngineState::Ready;
  t.add("e3");
  for (std::size_t i = 0; i < keys.size(); i += 3) {
    const auto now = chosen(keys[i]);
    CHECK((now == before[i] || now == "e3"));
  }
}

TEST_CASE("consistent hashing: which header is the key") {
  peer_table t(5);
  t.use({{"", "consistent-hashing-picker", {}}});
  const std::vector<std::string> engines{"e0", "e1", "e2", "e3", "e4"};
  const auto by = [&](std::string_view key) { return on_ring(plugins::engine_rings::hash_of(key), engines); };
  t.headers = {{"cookie", "c"}};
  CHECK(t.chosen() == by("c"));
  t.headers = {{"cookie", "c"}, {"x-forwarded-for", "10.0.0.7, 10.0.0.1"}};
  CHECK(t.chosen() == by("10.0.0.7"));
  t.headers.emplace_back("authorization", "Bearer t");
  CHECK(t.chosen() == by("Bearer t"));
  t.headers.emplace_back("x-smg-routing-key", "k");
  CHECK(t.chosen() == by("k"));
  t.headers.emplace_back("x-smg-target-worker", "3");
  CHECK(t.ranked() == "e3");
  for (const auto* nobody : {"5", "-1", "3x", "99999999999999999999"}) {
    t.headers.back().second = nobody;
    CHECK(t.chosen().empty());
  }
  CHECK(t.decide().reason == "no engine of model m can take this request: 5 filtered out");
  t.headers.back().second = "3";
  t.of.endpoints[3].state = fb::EngineState::Draining;
  CHECK(t.chosen().empty());
  // Nobody in particular: anywhere.
  t.headers.clear();
  CHECK(t.chosen_times(200).size() == 4);
}

TEST_CASE("prefix hash: prompts that begin alike go to one engine, within its share of the load") {
  peer_table t(4);
  t.use({{"", "prefix-hash-picker", {}}});
  const std::vector<std::string> engines{"e0", "e1", "e2", "e3"};
  const auto by = [&](std::uint64_t key) { return on_ring(plugins::engine_rings::hash_of(key), engines); };
  // 256 tokens are 16 blocks of 16.
  std::set<std::string> seen;
  for (std::uint64_t prompt = 0; prompt < 40; ++prompt) {
    t.keys.clear();
    for (std::uint64_t i = 0; i < 20; ++i) t.keys.push_back(i < 16 ? 100 * prompt + i : 7'777);
    CHECK(t.chosen() == by(100 * prompt + 15));
    seen.insert(t.chosen());
    t.keys.resize(9);
    CHECK(t.chosen() == by(100 * prompt + 8));
  }
  CHECK(seen.size() == 4);
  t.request.block_size = 512;
  CHECK(t.chosen() == by(3'900));
}

TEST_CASE("prefix hash: above 1.25 * (all in flight + 1) / engines, or without a key, the least loaded") {
  peer_table t(2);
  t.use({{"", "prefix-hash-picker", {}}});
  t.keys = {42};
  const auto mine = t.chosen();
  const unsigned me = mine == "e0" ? 0 : 1, other = 1 - me;
  t.in_flight(other, 1);
  t.in_flight(me, 3);  // 1.25 * 5 / 2 = 3.125
  CHECK(t.chosen() == mine);
  t.in_flight(me, 4);  // 1.25 * 6 / 2 = 3.75
  CHECK(t.chosen() != mine);
  t.use({{"", "prefix-hash-picker", {{"loadFactor", 1.4}}}});  // 1.4 * 6 / 2 = 4.2
  CHECK(t.chosen() == mine);
  t.keys.clear();
  CHECK(t.chosen() != mine);
}

}  // namespace
}  // namespace infernex::router
