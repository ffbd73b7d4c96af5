#include "actors/engine/ledger.hpp"

#include <set>

#include <doctest/doctest.h>

namespace {

using namespace infernex;
using namespace infernex::engine;
using namespace std::chrono_literals;
using state = fb::EngineState;

ledger_settings settings(std::string model = "m", std::size_t message_keys = 60'000) {
  ledger_settings s;
  s.engine.instance = "e0";
  s.engine.model = std::move(model);
  s.engine.url = "http://127.0.0.1:8100";
  s.engine.kv_events = "tcp://127.0.0.1:5557";
  s.agent_epoch = 77;
  s.message_keys = message_keys;
  return s;
}

probe_result answered(unsigned status, std::uint64_t wall_ns = 1) {
  probe_result probe;
  probe.health = {probe_outcome::answered, status, wall_ns};
  return probe;
}

event_batch group_of(const ledger& book, std::vector<kv_event> events, fb::KvHealth health = fb::KvHealth::Live) {
  event_batch group;
  group.generation = book.generation();
  group.batches.emplace_back().events = std::move(events);
  group.health = health;
  group.engine_sequence = 5;
  return group;
}

stored_blocks stored(std::uint64_t hash, std::size_t count, std::uint32_t token) {
  stored_blocks blocks;
  blocks.block_size = 2;
  for (std::size_t i = 0; i < count; ++i) blocks.hashes.push_back(hash + i);
  for (std::uint32_t i = 0; i < 2 * count; ++i) blocks.tokens.push_back(token + i);
  return blocks;
}

/// Follows deltas as an indexer does, checking their numbering and figures.
struct follower {
  std::set<std::uint64_t> keys;
  std::uint64_t sequence = 0;
  void follow(const std::vector<fb::KvDeltaT>& deltas, std::size_t message_keys = 60'000) {
    for (const auto& delta : deltas) {
      REQUIRE(delta.origin->sequence == ++sequence);
      REQUIRE(delta.origin->epoch == 77);
      REQUIRE(delta.added.size() + delta.removed.size() <= message_keys);
      if (delta.cleared) keys.clear();
      for (const auto key : delta.removed) REQUIRE(keys.erase(key) == 1);
      for (const auto key : delta.added) REQUIRE(keys.insert(key).second);
      std::uint64_t digest = 0;
      for (const auto key : keys) digest ^= key;
      REQUIRE(delta.kv_keys == keys.size());
      REQUIRE(delta.kv_digest == digest);
    }
  }
};

TEST_CASE("nothing is announced before the model is known; a loading engine is announced as starting") {
  ledger book(settings(""));
  CHECK_FALSE(book.on_probe(answered(503)).announce);
  CHECK_FALSE(book.announcement().has_value());
  auto ready = answered(200);
  CHECK_FALSE(book.on_probe(ready).resync);  // keys cannot be computed without the model's name
  ready.models = model_list{"learned", 4096, {"ada"}};
  const auto orders = book.on_probe(ready);
  CHECK(orders.resync);
  CHECK(orders.announce);
  const auto announcement = book.announcement();
  REQUIRE(announcement.has_value());
  CHECK(announcement->model == "learned");
  CHECK(announcement->max_model_len == 4096U);
  CHECK(announcement->adapters == std::vector<std::string>{"ada"});
  CHECK(announcement->origin->id == "agent/e0");
  CHECK_FALSE(announcement->block_size.has_value());

  ledger configured(settings());
  CHECK_FALSE(configured.announcement().has_value());
  CHECK(configured.on_probe(answered(503)).announce);
  CHECK(configured.announcement()->state == state::Starting);
  CHECK_FALSE(configured.on_probe(answered(503)).announce);
}

TEST_CASE("deltas add up to the mirror, the announcement carries its figures") {
  ledger book(settings());
  follower indexer;
  CHECK(book.on_probe(answered(200)).resync);
  const auto first = book.take_deltas();
  REQUIRE(first.size() == 1);
  CHECK(first[0].cleared);
  indexer.follow(first);
  CHECK(book.on_events(group_of(book, {stored(1, 3, 0)})));  // live now: a fact has changed
  const auto deltas = book.take_deltas();
  REQUIRE(deltas.size() == 1);
  CHECK(deltas[0].engine_sequence == 5U);
  CHECK(deltas[0].added.size() == 3);
  indexer.follow(deltas);
  CHECK(book.take_deltas().empty());
  const auto announcement = book.announcement();
  CHECK(announcement->kv_sequence == 2);
  CHECK(announcement->kv_keys == 3);
  CHECK(announcement->kv_digest == deltas[0].kv_digest);
  CHECK(announcement->kv_health == fb::KvHealth::Live);
  CHECK(announcement->block_size == 2U);
  CHECK_FALSE(book.on_events(group_of(book, {removed_blocks{{1}, block_tier::gpu, std::nullopt}})));
  indexer.follow(book.take_deltas());
  CHECK(indexer.keys.size() == 2);
}

TEST_CASE("large changes travel in several deltas, each exact in itself; snapshots in chunks") {
  ledger book(settings("m", 10));
  follower indexer;
  book.on_probe(answered(200));
  book.on_events(group_of(book, {stored(1, 25, 0)}));
  auto deltas = book.take_deltas();
  CHECK(deltas.size() == 3);
  indexer.follow(deltas, 10);
  removed_blocks most;
  for (std::uint64_t hash = 6; hash <= 25; ++hash) most.hashes.push_back(hash);
  book.on_events(group_of(book, {most, stored(100, 7, 500)}));
  deltas = book.take_deltas();
  CHECK(deltas.size() == 3);
  indexer.follow(deltas, 10);
  CHECK(indexer.keys.size() == 12);

  const auto chunks = book.snapshot();
  REQUIRE(chunks.size() == 2);
  std::set<std::uint64_t> keys;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    CHECK(chunks[i].index == i);
    CHECK(chunks[i].total == 2);
    CHECK(chunks[i].as_of == 6);
    CHECK(chunks[i].keys.size() <= 10);
    keys.insert(chunks[i].keys.begin(), chunks[i].keys.end());
  }
  CHECK(keys == indexer.keys);
}

TEST_CASE("an empty mirror is a snapshot of one empty chunk") {
  ledger book(settings());
  book.on_probe(answered(200));
  book.take_deltas();
  const auto chunks = book.snapshot();
  REQUIRE(chunks.size() == 1);
  CHECK(chunks[0].total == 1);
  CHECK(chunks[0].keys.empty());
}

TEST_CASE("an engine that is back has a new epoch and none of its old blocks; late groups are ignored") {
  ledger book(settings());
  follower indexer;
  book.on_probe(answered(200, 1000));
  book.on_events(group_of(book, {stored(1, 3, 0)}));
  indexer.follow(book.take_deltas());
  const auto late = group_of(book, {stored(50, 3, 90)});
  CHECK(book.announcement()->state == state::Ready);
  probe_result refused;
  refused.health.outcome = probe_outcome::refused;
  CHECK_FALSE(book.on_probe(refused).announce);
  const auto down = book.on_probe(refused);
  CHECK(down.announce);
  CHECK(down.state_changed);
  CHECK(book.announcement()->state == state::Down);
  const auto back = book.on_probe(answered(200, 2000));
  CHECK(back.announce);
  CHECK(back.resync);
  const auto deltas = book.take_deltas();
  REQUIRE(deltas.size() == 1);
  CHECK(deltas[0].cleared);
  CHECK(deltas[0].engine_epoch == 2000U);
  indexer.follow(deltas);
  CHECK(indexer.keys.empty());
  CHECK_FALSE(book.on_events(late));
  CHECK(book.take_deltas().empty());
  CHECK(book.announcement()->engine_epoch == 2000U);
  CHECK(book.announcement()->kv_health == fb::KvHealth::Replaying);
}

TEST_CASE("a group that begins with a clear replaces the set") {
  ledger book(settings());
  follower indexer;
  book.on_probe(answered(200));
  book.on_events(group_of(book, {stored(1, 3, 0)}));
  indexer.follow(book.take_deltas());
  auto restarted = group_of(book, {stored(9, 1, 70)}, fb::KvHealth::Partial);
  restarted.clear_first = true;
  CHECK(book.on_events(restarted));
  indexer.follow(book.take_deltas());
  CHECK(indexer.keys.size() == 1);
  CHECK(book.announcement()->kv_health == fb::KvHealth::Partial);
}

TEST_CASE("blocks of another size than configured are reported in the reason") {
  auto s = settings();
  s.engine.block_size = 16;
  ledger book(s);
  book.on_probe(answered(200));
  book.on_events(group_of(book, {stored(1, 3, 0)}));
  const auto announcement = book.announcement();
  CHECK(announcement->reason == "ready; its KV events have blocks of 2 tokens, not 16: they are not used");
  CHECK(announcement->kv_health == fb::KvHealth::Partial);
  CHECK(announcement->block_size == 16U);
  CHECK(book.keys() == 0);
  CHECK(book.dropped()[drop_reason::block_size_mismatch] == 1);
}

TEST_CASE("loads are numbered and carry rates; an engine without KV events says so") {
  auto s = settings();
  s.engine.kv_events.clear();
  ledger book(s);
  auto probe = answered(200);
  probe.metrics.emplace().prompt_tokens = 100;
  probe.metrics->block_size = 16;
  probe.at = std::chrono::steady_clock::time_point(10s);
  probe.scrape_ms = 1.5;
  auto orders = book.on_probe(probe);
  CHECK_FALSE(orders.resync);
  REQUIRE(orders.load.has_value());
  CHECK(orders.load->origin->sequence == 1);
  CHECK_FALSE(orders.load->prompt_tokens_per_second.has_value());
  probe.metrics->prompt_tokens = 300;
  probe.at += 2s;
  orders = book.on_probe(probe);
  CHECK(orders.load->origin->sequence == 2);
  CHECK(orders.load->prompt_tokens_per_second == 100.0);
  CHECK(orders.load->scrape_ms == 1.5);
  CHECK_FALSE(book.on_probe(answered(200)).load.has_value());
  const auto announcement = book.announcement();
  CHECK(announcement->kv_health == fb::KvHealth::Absent);
  CHECK(announcement->block_size == 16U);
  CHECK(book.take_deltas().empty());
}

}  // namespace
