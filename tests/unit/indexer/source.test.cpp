#include "actors/indexer/source.hpp"

#include <numeric>

#include <doctest/doctest.h>

#include "messages/kv_digest.hpp"
#include "tests/unit/indexer/source_setup.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
using setup = source_setup;

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
}  // namespace
}  // namespace infernex::indexer
