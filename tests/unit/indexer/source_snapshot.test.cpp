#include <doctest/doctest.h>

#include "actors/indexer/source.hpp"
#include "tests/unit/indexer/source_setup.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
using setup = source_setup;

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
}  // namespace
}  // namespace infernex::indexer
