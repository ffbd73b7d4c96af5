#include "actors/indexer/source.hpp"

#include <numeric>
#include <set>

#include <doctest/doctest.h>

#include "messages/kv_digest.hpp"
#include "tests/unit/indexer/agent_model.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
using key_set = std::set<block_key>;

/// A source with its index, and an agent that speaks to it without loss.
struct setup {
  kv_index index;
  sync_settings settings;
  sync_counters counters;
  time_point now{std::chrono::hours(1)};
  source of;
  agent_model agent;

  setup() : of((index.add_instance("e"), index), "e", settings, counters, now) {}

  key_set held() {
    kv_index::reader reader(index);
    key_set all;
    for (block_key k = 1; k < 5'000; ++k)
      if (!reader.lookup({&k, 1}).empty()) all.insert(k);
    return all;
  }
  void announce() { of.on_announce(agent.announce(), now); }
  void tell(const owned_delta& d) { of.on_delta(d.get(), now); }
  void pass(std::chrono::milliseconds time) {
    now += time;
    of.on_tick(now);
  }
  bool asked() { return of.take_request(now); }
  void answer() {
    for (const auto& chunk : agent.snapshot(3)) of.on_chunk(chunk.get(), now);
  }
};

TEST_CASE("deltas from the first on are followed and checked") {
  setup s;
  s.tell(s.agent.change({}, {1, 2, 3}));
  s.tell(s.agent.change({2}, {4}));
  CHECK(s.of.exact(s.now));
  CHECK(s.of.sequence() == 2);
  CHECK(s.held() == key_set{1, 3, 4});
  s.announce();
  CHECK(s.of.exact(s.now));
  CHECK_FALSE(s.asked());
  CHECK(s.counters.mismatches == 0);
}

TEST_CASE("an agent met in the middle of its life is asked at once") {
  setup s;
  s.agent.change({}, {1, 2, 3, 4, 5});
  s.announce();
  CHECK_FALSE(s.of.exact(s.now));
  REQUIRE(s.asked());
  CHECK_FALSE(s.asked());  // once
  s.answer();
  CHECK(s.of.exact(s.now));
  CHECK(s.held() == key_set{1, 2, 3, 4, 5});
}

TEST_CASE("a gap: deltas that arrive meanwhile are kept, those the snapshot includes are dropped") {
  setup s;
  s.tell(s.agent.change({}, {1}));
  s.agent.change({}, {2});  // lost
  s.tell(s.agent.change({}, {3}));
  CHECK(s.counters.gaps == 1);
  CHECK_FALSE(s.of.exact(s.now));
  REQUIRE(s.asked());
  s.tell(s.agent.change({1}, {4}));
  const auto chunks = s.agent.snapshot(2);
  const auto later = s.agent.change({3}, {5});
  s.tell(later);
  for (const auto& chunk : chunks) s.of.on_chunk(chunk.get(), s.now);
  CHECK(s.of.exact(s.now));
  CHECK(s.of.sequence() == 5);
  CHECK(s.held() == key_set{2, 4, 5});
}

TEST_CASE("an announcement may overtake deltas: patience first, then a snapshot") {
  setup s;
  s.tell(s.agent.change({}, {1}));
  const auto late = s.agent.change({}, {2});
  s.announce();
  CHECK_FALSE(s.asked());
  SUBCASE("the delta comes") {
    s.pass(300ms);
    s.tell(late);
    s.pass(1s);
    CHECK_FALSE(s.asked());
    CHECK(s.of.exact(s.now));
  }
  SUBCASE("it does not come") {
    s.pass(499ms);
    CHECK_FALSE(s.asked());
    s.pass(1ms);
    CHECK(s.asked());
  }
  SUBCASE("it has not come by the next announcement") {
    s.announce();
    CHECK(s.asked());
  }
}

TEST_CASE("equal sequence but another digest is repaired by a snapshot") {
  setup s;
  s.tell(s.agent.change({}, {1, 2}));
  s.index.remove("e", std::vector<block_key>{2});
  s.announce();
  CHECK(s.counters.mismatches == 1);
  CHECK_FALSE(s.of.exact(s.now));
  REQUIRE(s.asked());
  s.answer();
  CHECK(s.of.exact(s.now));
  CHECK(s.held() == key_set{1, 2});
}

TEST_CASE("an unanswered request is repeated, each time twice as late, up to a limit") {
  setup s;
  s.agent.change({}, {1});
  s.announce();
  REQUIRE(s.asked());
  std::vector<std::chrono::seconds> pauses;
  auto last = s.now;
  while (pauses.size() < 8) {
    s.pass(1s);
    if (!s.asked()) continue;
    pauses.push_back(std::chrono::duration_cast<std::chrono::seconds>(s.now - last));
    last = s.now;
  }
  CHECK(pauses == std::vector<std::chrono::seconds>{2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s});
  s.answer();
  CHECK(s.of.exact(s.now));
}

TEST_CASE("a larger agent epoch replaces a smaller one, whose messages then count for nothing") {
  setup s;
  s.tell(s.agent.change({}, {1, 2}));
  const auto old = s.agent.change({}, {3});
  const auto old_announcement = s.agent.announce();
  s.agent.restart();
  s.tell(s.agent.change({}, {7}));
  CHECK(s.held() == key_set{7});
  CHECK(s.of.exact(s.now));
  s.tell(old);
  s.of.on_announce(old_announcement, s.now);
  CHECK(s.held() == key_set{7});
  CHECK(s.of.epoch() == s.agent.epoch);
  CHECK(s.counters.deltas_ignored == 1);
}

TEST_CASE("a new engine process: its predecessor's blocks are gone with the first word of it") {
  setup s;
  s.agent.engine_epoch = 5'000;
  s.tell(s.agent.change({}, {1, 2, 3}));
  const auto in_flight = s.agent.change({}, {4});
  // Engine clocks may go backwards: an epoch counts as newer by its place, not by its value.
  const auto cleared = s.agent.new_engine(4'000);
  s.announce();
  CHECK(s.held().empty());
  s.tell(in_flight);
  CHECK(s.held().empty());
  s.tell(cleared);
  CHECK(s.of.exact(s.now));
  s.tell(s.agent.change({}, {1}));
  CHECK(s.held() == key_set{1});
  CHECK(s.of.exact(s.now));
  CHECK_FALSE(s.asked());
}

TEST_CASE("an announcement overtaken by the new engine's first delta does not bring the old engine back") {
  setup s;
  s.agent.engine_epoch = 100;
  s.tell(s.agent.change({}, {1}));
  auto stale = s.agent.announce();
  stale.holds_nothing = true;
  s.tell(s.agent.new_engine(200));
  s.tell(s.agent.change({}, {9}));
  s.of.on_announce(stale, s.now);
  CHECK(s.held() == key_set{9});
  CHECK(s.of.engine_epoch() == 200);
  CHECK(s.of.exact(s.now));
}

TEST_CASE("an engine that is down holds nothing; back with the same mirror, a snapshot restores it") {
  setup s;
  s.agent.engine_epoch = 100;
  s.tell(s.agent.change({}, {1, 2}));
  s.agent.down = true;
  s.announce();
  CHECK(s.held().empty());
  CHECK_FALSE(s.of.exact(s.now));
  s.tell(s.agent.change({}, {3}));
  CHECK(s.held().empty());
  s.announce();
  CHECK_FALSE(s.asked());
  s.agent.down = false;
  s.announce();
  REQUIRE(s.asked());
  s.answer();
  CHECK(s.held() == key_set{1, 2, 3});
  CHECK(s.of.exact(s.now));
}

TEST_CASE("a snapshot that arrives while the engine is down is not put in") {
  setup s;
  s.agent.change({}, {1, 2});
  s.announce();
  REQUIRE(s.asked());
  const auto chunks = s.agent.snapshot(1);
  s.agent.down = true;
  s.announce();
  for (const auto& chunk : chunks) s.of.on_chunk(chunk.get(), s.now);
  CHECK(s.held().empty());
  CHECK_FALSE(s.of.exact(s.now));
}

TEST_CASE("silence: not exact after 6 s, forgotten after 60 s") {
  setup s;
  s.tell(s.agent.change({}, {1}));
  s.pass(5'999ms);
  CHECK(s.of.exact(s.now));
  s.pass(1ms);
  CHECK_FALSE(s.of.exact(s.now));
  CHECK(s.held() == key_set{1});
  s.announce();
  CHECK(s.of.exact(s.now));
  s.pass(59'999ms);
  CHECK_FALSE(s.of.forgotten(s.now));
  s.pass(1ms);
  CHECK(s.of.forgotten(s.now));
}

TEST_CASE("a lost bus is not the agent's silence, and what was asked is asked again") {
  setup s;
  s.agent.change({}, {1});
  s.announce();
  REQUIRE(s.asked());
  s.now += 300s;
  s.of.on_bus_back(s.now);
  CHECK_FALSE(s.of.forgotten(s.now));
  REQUIRE(s.asked());
  s.answer();
  CHECK(s.of.exact(s.now));
}

TEST_CASE("parts of a snapshot may come in any order and twice; nonsense among them is ignored") {
  setup s;
  s.agent.change({}, {1, 2, 3, 4, 5, 6});
  s.announce();
  REQUIRE(s.asked());
  auto chunks = s.agent.snapshot(2);
  REQUIRE(chunks.size() == 3);
  auto nonsense = chunks[0];
  nonsense.head.index = 3;
  s.of.on_chunk(nonsense.get(), s.now);
  nonsense.head.total = 0;
  s.of.on_chunk(nonsense.get(), s.now);
  s.of.on_chunk(chunks[2].get(), s.now);
  s.of.on_chunk(chunks[0].get(), s.now);
  s.of.on_chunk(chunks[0].get(), s.now);
  CHECK_FALSE(s.of.exact(s.now));
  s.of.on_chunk(chunks[1].get(), s.now);
  CHECK(s.of.exact(s.now));
  CHECK(s.held() == key_set{1, 2, 3, 4, 5, 6});
  s.of.on_chunk(chunks[1].get(), s.now);  // nothing is under way any more
  CHECK(s.held().size() == 6);
}

TEST_CASE("a snapshot over the bound is refused and asked for again later, never half applied") {
  setup s;
  s.settings.max_snapshot_keys = 4;
  s.agent.change({}, {1, 2, 3, 4, 5, 6});
  s.announce();
  REQUIRE(s.asked());
  s.answer();
  CHECK(s.counters.snapshots_refused == 1);
  CHECK(s.held().empty());
  CHECK_FALSE(s.asked());
  s.pass(2s);
  CHECK(s.asked());
}

TEST_CASE("too many deltas during a snapshot: the rest is shed, counted, and asked for") {
  setup s;
  s.settings.max_kept_deltas = 2;
  s.agent.change({}, {1});
  s.announce();
  REQUIRE(s.asked());
  const auto chunks = s.agent.snapshot(9);
  for (block_key k = 2; k < 6; ++k) s.tell(s.agent.change({}, {k}));
  CHECK(s.counters.deltas_shed == 2);
  for (const auto& chunk : chunks) s.of.on_chunk(chunk.get(), s.now);
  CHECK(s.held() == key_set{1, 2, 3});
  s.tell(s.agent.change({}, {6}));
  CHECK(s.counters.gaps == 1);
  s.pass(2s);
  REQUIRE(s.asked());
  s.answer();
  CHECK(s.held() == key_set{1, 2, 3, 4, 5, 6});
  CHECK(s.of.exact(s.now));
}

TEST_CASE("keys the index has no room for: not exact, and not asked for while there is none") {
  kv_index small({.max_instances = 4, .max_bytes = 3'000});
  small.add_instance("e");
  sync_settings settings;
  sync_counters counters;
  time_point now{1h};
  source of(small, "e", settings, counters, now);
  agent_model agent;
  std::vector<block_key> many(3'000);
  std::iota(many.begin(), many.end(), 1);
  of.on_delta(agent.change({}, many).get(), now);
  CHECK_FALSE(of.exact(now));
  unsigned requests = 0;
  for (int second = 0; second < 300; ++second) {
    if (of.take_request(now)) {
      ++requests;
      for (const auto& chunk : agent.snapshot(1'000)) of.on_chunk(chunk.get(), now);
    }
    if (second % 2 == 0) of.on_announce(agent.announce(), now);
    now += 1s;
    of.on_tick(now);
  }
  CHECK_FALSE(of.exact(now));
  CHECK(of.state(now) == sync_state::capped);
  CHECK(requests == 0);
}

TEST_CASE("a delta speaks of one tier; the digest tells the tiers apart") {
  setup s;
  const auto change = [&](std::vector<block_key> removed, std::vector<block_key> added, tier on, std::uint64_t keys,
                          std::uint64_t digest) {
    owned_delta d{
        {s.agent.epoch, ++s.agent.sequence, {}, false, {}, {}, keys, digest}, std::move(removed), std::move(added)};
    d.head.on = on;
    return d;
  };
  s.tell(change({}, {10, 11}, tier::Device, 2, 10 ^ 11));
  const auto two_tiers = 10 ^ 11 ^ digest_of(11, tier::Host);
  s.tell(change({}, {11}, tier::Host, 3, two_tiers));
  CHECK(s.of.exact(s.now));
  s.tell(change({11}, {}, tier::Device, 2, two_tiers ^ 11));
  CHECK(s.of.exact(s.now));
  CHECK(s.index.keys_of("e", tier::Device) == 1);
  CHECK(s.index.keys_of("e", tier::Host) == 1);

  // The same number of blocks on another tier is another set.
  s.tell(change({10}, {}, tier::Device, 1, digest_of(11, tier::Disk)));
  CHECK_FALSE(s.of.exact(s.now));
  REQUIRE(s.asked());
  owned_chunk device{{s.agent.epoch, {}, s.agent.sequence, 0, 2}, {}};
  owned_chunk disk{{s.agent.epoch, {}, s.agent.sequence, 1, 2}, {11}};
  disk.head.on = tier::Disk;
  s.of.on_chunk(disk.get(), s.now);
  s.of.on_chunk(device.get(), s.now);
  CHECK(s.of.exact(s.now));
  CHECK(s.index.keys_of("e", tier::Host) == 0);
  CHECK(s.index.keys_of("e", tier::Disk) == 1);
}

TEST_CASE("only an agent that promises a set without holes is galloped over") {
  setup s;
  kv_index::reader reader(s.index);
  std::vector<block_key> chain(100);
  std::iota(chain.begin(), chain.end(), 1'000);
  auto with_hole = s.agent.change({}, chain);
  SUBCASE("promised: the lookup may look at the end alone") {
    with_hole.head.closed = true;
    s.tell(with_hole);
    CHECK(reader.lookup(chain)[0].blocks == 100);
  }
  SUBCASE("a hole, and no promise any more") {
    with_hole.head.closed = true;
    s.tell(with_hole);
    s.tell(s.agent.change({1'050}, {}));
    CHECK(reader.lookup(chain)[0].blocks == 50);
    CHECK(reader.walk(chain)[0].blocks == 50);
  }
  SUBCASE("a snapshot carries the promise too, or its absence") {
    s.agent.change({1'050}, {});
    s.announce();
    REQUIRE(s.asked());
    s.answer();
    CHECK(s.of.exact(s.now));
    CHECK(reader.lookup(chain)[0].blocks == 50);
  }
}

TEST_CASE("at the byte limit: the rest is followed, nothing is asked, and a snapshot comes when there is room") {
  kv_index index({.max_instances = 4, .max_bytes = 400'000});
  sync_settings settings;
  sync_counters counters;
  time_point now{std::chrono::hours(1)};
  index.add_instance("big");
  index.add_instance("e");
  std::vector<block_key> filling(40'000);
  std::iota(filling.begin(), filling.end(), 1'000'000);
  REQUIRE(index.add("big", filling) != 0);

  source of(index, "e", settings, counters, now);
  agent_model agent;
  std::vector<block_key> keys(3'000);
  std::iota(keys.begin(), keys.end(), 1);
  of.on_delta(agent.change({}, keys).get(), now);
  CHECK(of.state(now) == sync_state::capped);
  CHECK_FALSE(of.exact(now));
  CHECK_FALSE(of.take_request(now));
  of.on_delta(agent.change({1}, {5'000}).get(), now);
  of.on_announce(agent.announce(), now);
  now += 1s;
  of.on_tick(now);
  CHECK_FALSE(of.take_request(now));
  CHECK(counters.mismatches == 0);

  index.remove_instance("big");
  while (index.maintain()) {
  }
  of.on_tick(now);
  REQUIRE(of.take_request(now));
  CHECK(of.request_reason() == "room again");
  for (const auto& chunk : agent.snapshot(1'000)) of.on_chunk(chunk.get(), now);
  CHECK(of.state(now) == sync_state::exact);
  CHECK(index.keys_of("e") == 3'000);
}

TEST_CASE("refused for a limit that indexes share: asked for again when another index has made room") {
  auto shared = std::make_shared<byte_budget>(400'000);
  kv_index other({}, shared);
  kv_index index({}, shared);
  sync_settings settings;
  sync_counters counters;
  time_point now{std::chrono::hours(1)};
  other.add_instance("big");
  index.add_instance("e");
  std::vector<block_key> filling(40'000);
  std::iota(filling.begin(), filling.end(), 1'000'000);
  REQUIRE(other.add("big", filling) != 0);

  source of(index, "e", settings, counters, now);
  agent_model agent;
  std::vector<block_key> keys(20'000);
  std::iota(keys.begin(), keys.end(), 1);
  of.on_delta(agent.change({}, keys).get(), now);
  REQUIRE(of.state(now) == sync_state::capped);
  of.on_tick(now);
  CHECK_FALSE(of.take_request(now));
  other.remove_instance("big");
  while (other.maintain()) {
  }
  of.on_tick(now);
  CHECK(of.take_request(now));
}

}  // namespace
}  // namespace infernex::indexer
