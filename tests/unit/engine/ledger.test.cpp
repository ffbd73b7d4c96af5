#include "actors/engine/ledger.hpp"

#include <set>

#include <doctest/doctest.h>

#include "messages/kv_digest.hpp"

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
  std::set<std::pair<fb::KvTier, std::uint64_t>> keys;
  std::uint64_t sequence = 0;
  void follow(const std::vector<fb::KvDeltaT>& deltas, std::size_t message_keys = 60'000) {
    for (const auto& delta : deltas) {
      REQUIRE(delta.origin->sequence == ++sequence);
      REQUIRE(delta.origin->epoch == 77);
      REQUIRE(delta.added.size() + delta.removed.size() <= message_keys);
      if (delta.cleared) keys.clear();
      for (const auto key : delta.removed) REQUIRE(keys.erase({delta.tier, key}) == 1);
      for (const auto key : delta.added) REQUIRE(keys.emplace(delta.tier, key).second);
      std::uint64_t digest = 0;
      for (const auto& [tier, key] : keys) digest ^= digest_of(key, tier);
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
  CHECK_FALSE(book.on_events(group_of(book, {removed_blocks{{1}, fb::KvTier::Device, std::nullopt}})));
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
  std::set<std::pair<fb::KvTier, std::uint64_t>> keys;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    CHECK(chunks[i].index == i);
    CHECK(chunks[i].total == 2);
    CHECK(chunks[i].as_of == 6);
    CHECK(chunks[i].keys.size() <= 10);
    CHECK(chunks[i].closed);
    for (const auto key : chunks[i].keys) keys.emplace(chunks[i].tier, key);
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

TEST_CASE("a set with a hole says so in the delta that makes it; until then, and once it is filled, it is closed") {
  ledger book(settings("m", 2));
  follower indexer;
  const auto closed = [&](std::vector<kv_event> events) {
    book.on_events(group_of(book, std::move(events)));
    const auto deltas = book.take_deltas();
    indexer.follow(deltas, 2);
    std::vector<bool> claims;
    for (const auto& delta : deltas) claims.push_back(delta.closed);
    return claims;
  };
  book.on_probe(answered(200));
  CHECK(closed({stored(1, 5, 0)}) == std::vector{true, true, true});
  CHECK(closed({removed_blocks{{1, 2, 3}, fb::KvTier::Device, std::nullopt}}) == std::vector{false, false});
  CHECK_FALSE(book.snapshot()[0].closed);
  stored_blocks on_host;
  on_host.hashes = {4};
  on_host.tier = fb::KvTier::Host;
  CHECK(closed({on_host}) == std::vector{false});
  CHECK(closed({stored(1, 3, 0)}) == std::vector{false, true});
  CHECK(closed({all_cleared{}, stored(1, 3, 0)}) == std::vector{true, true});
}

TEST_CASE("tiers: a delta and a chunk are of one each") {
  ledger book(settings());
  follower indexer;
  book.on_probe(answered(200));
  stored_blocks on_host;
  on_host.hashes = {2, 1};
  on_host.tier = fb::KvTier::Host;
  book.on_events(group_of(book, {stored(1, 3, 0), on_host}));
  const auto deltas = book.take_deltas();
  REQUIRE(deltas.size() == 2);
  CHECK(deltas[0].cleared);
  CHECK(deltas[0].tier == fb::KvTier::Device);
  CHECK_FALSE(deltas[1].cleared);
  CHECK(deltas[1].tier == fb::KvTier::Host);
  indexer.follow(deltas);
  const auto chunks = book.snapshot();
  REQUIRE(chunks.size() == 2);
  CHECK(chunks[0].keys == deltas[0].added);
  CHECK(chunks[1].keys == deltas[1].added);
  CHECK(chunks[1].tier == fb::KvTier::Host);
  CHECK(book.keys() == 5);
  CHECK(book.mirror_bytes() > 0);
}

TEST_CASE("the size of the keys' blocks: the engine's descriptor, then the agent's setting, then the engine's own") {
  auto s = settings();
  ledger plain(s);
  s.canonical_block_size = 4;
  ledger canonical(s);
  s.engine.block_size = 6;
  ledger particular(s);
  for (auto* book : {&plain, &canonical, &particular}) {
    auto probe = answered(200);
    probe.metrics.emplace().block_size = 32;  // a hint, until there are events
    book->on_probe(probe);
    CHECK(book->announcement()->engine_block_size == 32U);
    CHECK(book->on_events(group_of(*book, {stored(1, 6, 0)})));
    CHECK(book->announcement()->engine_block_size == 2U);
    CHECK(book->announcement()->kv_health == fb::KvHealth::Live);
  }
  CHECK(plain.announcement()->block_size == 2U);
  CHECK(plain.keys() == 6);
  CHECK(canonical.announcement()->block_size == 4U);
  CHECK(canonical.keys() == 3);
  CHECK(particular.announcement()->block_size == 6U);
  CHECK(particular.keys() == 2);
}

TEST_CASE("blocks of another size than the engine began with are reported in the reason") {
  ledger book(settings());
  book.on_probe(answered(200));
  auto other = stored(7, 2, 50);
  other.hashes.pop_back();
  other.block_size = 4;
  book.on_events(group_of(book, {stored(1, 3, 0), other}));
  const auto announcement = book.announcement();
  CHECK(announcement->reason == "ready; its KV events have blocks of 4 tokens after blocks of 2: they are not used");
  CHECK(announcement->kv_health == fb::KvHealth::Partial);
  CHECK(announcement->block_size == 2U);
  CHECK(book.keys() == 3);
  CHECK(book.dropped()[drop_reason::block_size_mismatch] == 1);
}

TEST_CASE("batches of another data-parallel rank are left out and counted") {
  auto s = settings();
  s.engine.data_parallel_rank = 1;
  ledger book(s);
  book.on_probe(answered(200));
  CHECK(book.announcement()->data_parallel_rank == 1U);
  auto group = group_of(book, {stored(1, 3, 0)});
  group.batches[0].data_parallel_rank = 0;
  book.on_events(group);
  CHECK(book.keys() == 0);
  CHECK(book.dropped()[drop_reason::other_rank] == 1);
  for (const auto rank : {std::optional<std::int64_t>(1), std::optional<std::int64_t>()}) {
    group.batches[0].data_parallel_rank = rank;
    book.on_events(group);
    CHECK(book.keys() == 3);
  }
  CHECK(book.dropped()[drop_reason::other_rank] == 1);

  ledger single(settings());
  single.on_probe(answered(200));
  group.generation = single.generation();
  group.batches[0].data_parallel_rank = 3;
  single.on_events(group);
  CHECK(single.keys() == 3);
  CHECK_FALSE(single.announcement()->data_parallel_rank.has_value());
}

TEST_CASE("a stream of another data-parallel rank only is not live, and says why") {
  auto s = settings();
  s.engine.data_parallel_rank = 1;
  ledger book(s);
  book.on_probe(answered(200));
  auto group = group_of(book, {stored(1, 3, 0)});
  group.batches[0].data_parallel_rank = 3;
  CHECK(book.on_events(group));
  auto announcement = book.announcement();
  CHECK(announcement->kv_health == fb::KvHealth::Partial);
  CHECK(announcement->reason == "ready; its KV events are of data-parallel rank 3, not 1: they are not used");

  group.batches[0].data_parallel_rank = 1;  // ranks that share an endpoint
  book.on_events(group);
  CHECK(book.kv_health() == fb::KvHealth::Live);
  CHECK(book.announcement()->reason == "ready");
  group.batches[0].data_parallel_rank = 3;
  CHECK_FALSE(book.on_events(group));
  group.clear_first = true;
  CHECK(book.on_events(group));
  CHECK(book.kv_health() == fb::KvHealth::Partial);
}

TEST_CASE("what the parity probe found is a fact of the announcement") {
  ledger book(settings());
  book.on_probe(answered(200));
  CHECK(book.announcement()->parity_problem.empty());
  CHECK(book.set_parity_problem("keys differ"));
  CHECK(book.announcement()->parity_problem == "keys differ");
  CHECK_FALSE(book.set_parity_problem("keys differ"));
  CHECK(book.set_parity_problem(""));
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
