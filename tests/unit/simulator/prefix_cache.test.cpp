#include "actors/simulator/prefix_cache.hpp"

#include <numeric>

#include <doctest/doctest.h>

using namespace infernex::simulator;

namespace {

using kind = cache_change::kind;

constexpr std::uint32_t block = 4;

/// The names of a sequence's full blocks: those of equal start are equal.
std::vector<block_name> names(std::size_t tokens, block_name first = 0) {
  std::vector<block_name> chain(tokens / block);
  std::iota(chain.begin(), chain.end(), first);
  return chain;
}

std::vector<block_id> match(const prefix_cache& cache, const std::vector<block_name>& chain) {
  std::vector<block_id> found;
  cache.match(chain, found);
  CHECK(cache.matched(chain) == found.size());
  return found;
}

/// Holds memory for all of `tokens`, of which `reusable` may come from the cache, and names the full blocks.
std::vector<block_id> compute(prefix_cache& cache, std::size_t tokens, block_name first = 0, sequence_id of = 1) {
  auto blocks = match(cache, names(tokens - 1, first));
  const auto reused = blocks.size();
  const auto needed = (tokens + block - 1) / block;
  REQUIRE(cache.can_allocate(needed - reused, blocks));
  cache.hold(blocks);
  cache.allocate(needed - reused, blocks);
  cache.seal(of, blocks, reused, tokens / block, names(tokens, first));
  return blocks;
}

std::vector<cache_change> take(prefix_cache& cache) {
  std::vector<cache_change> all(cache.changes().begin(), cache.changes().end());
  cache.forget_changes();
  return all;
}

}  // namespace

TEST_CASE("what was computed is found by its names, from the start without a hole") {
  prefix_cache cache(block, 8);
  cache.release(compute(cache, 8));
  CHECK(match(cache, names(8)).size() == 2);
  CHECK(match(cache, names(12)).size() == 2);
  CHECK(match(cache, names(4)).size() == 1);
  CHECK(match(cache, names(8, 1)).size() == 1);
  CHECK(match(cache, names(8, 2)).empty());
  CHECK(match(cache, {}).empty());
}

TEST_CASE("what is stored is told with its place in its sequence") {
  prefix_cache cache(block, 8);
  auto blocks = compute(cache, 8, 10, 7);
  auto changes = take(cache);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].what == kind::stored);
  CHECK(changes[0].index == 0);
  CHECK(changes[0].name == 10);
  CHECK(changes[0].sequence == 7);
  CHECK(changes[1].index == 1);

  cache.allocate(1, blocks);
  cache.seal(7, blocks, 2, 3, names(12, 10));
  changes = take(cache);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].index == 2);
  CHECK(changes[0].name == 12);
  CHECK(take(cache).empty());
}

TEST_CASE("only unreferenced blocks are evicted, least recently released first, tails before heads") {
  prefix_cache cache(block, 6);
  const auto old_blocks = compute(cache, 8);
  const auto held = compute(cache, 8, 100);
  const auto recent = compute(cache, 8, 200);
  take(cache);
  cache.release(old_blocks);
  cache.release(recent);
  CHECK(cache.used() == 2);
  CHECK_FALSE(cache.can_allocate(5));
  REQUIRE(cache.can_allocate(3));

  std::vector<block_id> fresh;
  cache.allocate(3, fresh);
  const auto changes = take(cache);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].what == kind::removed);
  CHECK(changes[0].name == 1);
  CHECK(changes[1].name == 0);
  CHECK(changes[2].name == 201);
  CHECK(match(cache, names(8, 100)).size() == 2);
  CHECK(match(cache, names(8, 200)).size() == 1);
  CHECK(match(cache, names(8)).empty());
}

TEST_CASE("a shared block is free only after its last reference") {
  prefix_cache cache(block, 4);
  const auto first = compute(cache, 6);
  const auto second = compute(cache, 7);
  CHECK(first[0] == second[0]);
  CHECK(cache.used() == 3);
  cache.release(first);
  CHECK(cache.used() == 2);
  CHECK(cache.can_allocate(2));
  CHECK_FALSE(cache.can_allocate(3));
  cache.release(second);
  CHECK(cache.used() == 0);
}

TEST_CASE("reviving a cached block takes it from the memory that is free") {
  prefix_cache cache(block, 2);
  cache.release(compute(cache, 8));
  const auto reused = match(cache, names(8));
  REQUIRE(reused.size() == 2);
  CHECK(cache.can_allocate(0, reused));
  CHECK_FALSE(cache.can_allocate(1, reused));
}

TEST_CASE("a block computed twice is stored twice and removed twice, and only the last copy takes the name along") {
  prefix_cache cache(block, 4);
  const auto first = compute(cache, 4);  // a whole block: its last token is never taken from the cache
  const auto second = compute(cache, 4);
  CHECK(first[0] != second[0]);
  auto changes = take(cache);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].sole);
  CHECK_FALSE(changes[1].sole);
  CHECK(cache.cached() == 2);
  cache.release(first);
  cache.release(second);
  std::vector<block_id> fresh;
  cache.allocate(3, fresh);  // two blocks were never used
  changes = take(cache);
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].sole);
  CHECK(match(cache, names(4)).size() == 1);
  cache.allocate(1, fresh);
  changes = take(cache);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].sole);
  CHECK(match(cache, names(4)).empty());
}

TEST_CASE("clearing forgets everything and says so") {
  prefix_cache cache(block, 4);
  cache.release(compute(cache, 9));
  take(cache);
  cache.clear();
  const auto changes = take(cache);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].what == kind::cleared);
  CHECK(match(cache, names(8)).empty());
  std::vector<block_id> fresh;
  cache.allocate(4, fresh);
  CHECK(take(cache).empty());
}
