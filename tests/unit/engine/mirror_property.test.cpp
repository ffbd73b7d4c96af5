#include <array>

#include <doctest/doctest.h>

#include "actors/engine/kv_deltas.hpp"
#include "tests/unit/engine/mirror_model.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;
using test::digest_of_all;
using test::engine_shape;
using test::is_closed;
using test::membership;
using test::random_engine;

std::set<membership> content(const mirror& m) {
  std::set<membership> all;
  std::size_t count = 0;
  for (const auto& [tier, keys] : m.all_keys()) {
    count += keys.size();
    for (const auto key : keys) all.emplace(tier, key);
  }
  REQUIRE(count == all.size());
  return all;
}

/// Where each key stands in a list.
std::map<block_key, std::size_t> places(const std::vector<block_key>& keys) {
  std::map<block_key, std::size_t> at;
  for (std::size_t i = 0; i < keys.size(); ++i) at.emplace(keys[i], i);
  REQUIRE(at.size() == keys.size());
  return at;
}

/// No key stands before (`forward`), or after, the one it follows.
bool in_order(const std::vector<block_key>& keys, const std::map<block_key, block_key>& parents, bool forward) {
  const auto at = places(keys);
  return std::ranges::all_of(at, [&](const auto& one) {
    const auto parent = at.find(parents.at(one.first));
    return parent == at.end() || (parent->second < one.second) == forward;
  });
}

/// Applies changes one key at a time, as an index does.
struct follower {
  std::set<membership> all;
  std::size_t closed_steps = 0;

  void follow(const key_difference& change, const std::map<block_key, block_key>& parents) {
    if (change.cleared) all.clear();
    const bool was_closed = is_closed(all, parents);
    const auto check = [&] {
      if (!was_closed || !change.closed) return;
      REQUIRE(is_closed(all, parents));
      ++closed_steps;
    };
    for (const auto& [tier, removed, added] : change.changes) {
      REQUIRE_FALSE((removed.empty() && added.empty()));
      REQUIRE(in_order(removed, parents, false));
      REQUIRE(in_order(added, parents, true));
      for (const auto key : removed) {
        REQUIRE(all.erase({tier, key}) == 1);
        check();
      }
      for (const auto key : added) {
        REQUIRE(all.emplace(tier, key).second);
        check();
      }
    }
    REQUIRE(change.closed == is_closed(all, parents));
  }
};

/// Applies deltas as they come over the bus.
struct receiver {
  std::set<membership> all;
  void follow(const std::vector<fb::KvDeltaT>& deltas, const std::map<block_key, block_key>& parents) {
    for (const auto& delta : deltas) {
      if (delta.cleared) all.clear();
      for (const auto key : delta.removed) REQUIRE(all.erase({delta.tier, key}) == 1);
      for (const auto key : delta.added) REQUIRE(all.emplace(delta.tier, key).second);
      REQUIRE(delta.kv_keys == all.size());
      REQUIRE(delta.kv_digest == digest_of_all(all));
      if (delta.closed) REQUIRE(is_closed(all, parents));
    }
    if (!deltas.empty()) REQUIRE(deltas.back().closed == is_closed(all, parents));
  }
};

void run(std::uint64_t seed, engine_shape shape, int steps, std::size_t& closed_steps) {
  CAPTURE(seed);
  random_engine engine(seed, shape);
  mirror m({"m", shape.canonical_size, 100'000, 1000});
  follower index;
  receiver bus;
  published_set published;
  std::mt19937_64 random(seed);
  for (int step = 0; step < steps; ++step) {
    m.apply(engine.next());
    if (random() % 5 != 0) continue;
    const auto truth = engine.truth();
    REQUIRE(content(m) == truth);
    REQUIRE(m.keys() == truth.size());
    REQUIRE(m.digest() == digest_of_all(truth));
    REQUIRE(m.closed() == is_closed(truth, engine.parents()));
    for (const auto& [tier, keys] : m.all_keys()) REQUIRE(in_order(keys, engine.parents(), true));
    const auto change = m.take_difference();
    index.follow(change, engine.parents());
    REQUIRE(index.all == truth);
    bus.follow(deltas_of(change, published, 3), engine.parents());
    REQUIRE(bus.all == truth);
    REQUIRE(m.take_difference().empty());
  }
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
  CHECK(m.parked() == 0);
  closed_steps += index.closed_steps;
}

constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 10> sizes{
    {{2, 2}, {1, 1}, {16, 16}, {2, 8}, {8, 2}, {3, 2}, {2, 3}, {6, 4}, {4, 6}, {33, 16}}};

TEST_CASE("property: after every event the mirror holds exactly what the engine caches, and its differences add up") {
  std::size_t closed_steps = 0;
  for (const auto& [engine_size, canonical_size] : sizes) {
    CAPTURE(engine_size);
    CAPTURE(canonical_size);
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      run(seed, {engine_size, canonical_size, seed % 2 == 0, seed % 4 < 2, seed > 3}, 150, closed_steps);
  }
  CHECK(closed_steps > 1000);
}

TEST_CASE("property: a mirror that joins late never claims a block the engine does not cache") {
  for (const auto& [engine_size, canonical_size] : sizes) {
    CAPTURE(engine_size);
    CAPTURE(canonical_size);
    std::size_t held = 0;
    for (std::uint64_t seed = 100; seed < 104; ++seed) {
      CAPTURE(seed);
      random_engine engine(seed, {engine_size, canonical_size, false, true});
      mirror m({"m", canonical_size, 100'000, 64});
      for (int step = 0; step < 50; ++step) engine.next();  // lost
      for (int step = 0; step < 100; ++step) {
        m.apply(engine.next());
        if (step % 5 != 0) continue;
        const auto truth = engine.truth();
        for (const auto& one : content(m)) REQUIRE(truth.contains(one));
        held += m.keys();
      }
    }
    CHECK(held > 0);
  }
}

TEST_CASE("property: the order in which stores arrive does not matter") {
  for (const auto& [engine_size, canonical_size] : sizes) {
    CAPTURE(engine_size);
    CAPTURE(canonical_size);
    for (std::uint64_t seed = 200; seed < 203; ++seed) {
      CAPTURE(seed);
      random_engine engine(seed, {engine_size, canonical_size, false, false});
      std::vector<kv_event> stores;
      while (stores.size() < 60) stores.push_back(engine.store_some());
      std::mt19937_64 random(seed);
      std::ranges::shuffle(stores, random);
      mirror m({"m", canonical_size, 100'000, 10'000});
      for (const auto& event : stores) m.apply(event);
      CHECK(content(m) == engine.truth());
      CHECK(m.parked() == 0);
      CHECK(m.complete());
    }
  }
}

}  // namespace
