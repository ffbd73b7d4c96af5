#include "actors/simulator/prefix_cache.hpp"

#include <numeric>

#include <doctest/doctest.h>

using namespace infernex::simulator;

namespace {

constexpr std::uint32_t block = 4;

std::vector<token_id> numbers(std::size_t count, token_id first = 0) {
  std::vector<token_id> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Holds memory for the whole prompt and names its full blocks.
std::vector<block_id> compute(prefix_cache& cache, const std::vector<token_id>& tokens, std::string_view salt = {}) {
  auto blocks = cache.match(tokens, salt);
  const auto reused = blocks.size();
  const auto needed = (tokens.size() + block - 1) / block;
  REQUIRE(cache.can_allocate(needed - reused, blocks));
  cache.hold(blocks);
  cache.allocate(needed - reused, blocks);
  cache.seal(blocks, reused, tokens.size() / block, tokens, salt);
  return blocks;
}

}  // namespace

TEST_CASE("a prompt is served from the cache, but never its last token") {
  prefix_cache cache(block, 8, 1);
  cache.release(compute(cache, numbers(8)));
  CHECK(cache.match(numbers(7), {}).size() == 1);
  CHECK(cache.match(numbers(8), {}).size() == 1);
  CHECK(cache.match(numbers(9), {}).size() == 2);
  CHECK(cache.match(numbers(4), {}).empty());
  CHECK(cache.match(numbers(9, 1), {}).empty());
  CHECK(cache.match({}, {}).empty());
}

TEST_CASE("stored events chain by the parent's hash and carry the tokens") {
  prefix_cache cache(block, 8, 1);
  auto blocks = compute(cache, numbers(8));
  auto events = cache.take_events();
  REQUIRE(events.size() == 1);
  const auto first = std::get<blocks_stored>(events[0]);
  CHECK(first.parent == std::nullopt);
  CHECK(first.hashes.size() == 2);
  CHECK(first.tokens == numbers(8));

  cache.allocate(1, blocks);
  cache.seal(blocks, 2, 3, numbers(12), {});
  events = cache.take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::get<blocks_stored>(events[0]).parent == first.hashes[1]);
  CHECK(std::get<blocks_stored>(events[0]).tokens == numbers(4, 8));
  CHECK(cache.take_events().empty());
}

TEST_CASE("hashes differ between processes and between salts") {
  prefix_cache one(block, 8, 1);
  prefix_cache other(block, 8, 2);
  compute(one, numbers(4));
  compute(other, numbers(4));
  const auto a = std::get<blocks_stored>(one.take_events()[0]);
  const auto b = std::get<blocks_stored>(other.take_events()[0]);
  CHECK(a.hashes != b.hashes);

  CHECK(one.match(numbers(5), {}).size() == 1);
  CHECK(one.match(numbers(5), "secret").empty());
  compute(one, numbers(5), "secret");
  const auto salted = std::get<blocks_stored>(one.take_events()[0]);
  CHECK(salted.salt == "secret");
  CHECK(salted.hashes != a.hashes);
}

TEST_CASE("only unreferenced blocks are evicted, least recently released first, tails before heads") {
  prefix_cache cache(block, 6, 1);
  const auto old_blocks = compute(cache, numbers(8));
  const auto held = compute(cache, numbers(8, 100));
  const auto recent = compute(cache, numbers(8, 200));
  std::vector<engine_hash> hashes;
  for (const auto& event : cache.take_events()) {
    for (auto hash : std::get<blocks_stored>(event).hashes) hashes.push_back(hash);
  }
  cache.release(old_blocks);
  cache.release(recent);
  CHECK(cache.used() == 2);
  CHECK_FALSE(cache.can_allocate(5));
  REQUIRE(cache.can_allocate(3));

  std::vector<block_id> fresh;
  cache.allocate(3, fresh);
  const auto events = cache.take_events();
  REQUIRE(events.size() == 3);
  CHECK(std::get<block_removed>(events[0]).hash == hashes[1]);
  CHECK(std::get<block_removed>(events[1]).hash == hashes[0]);
  CHECK(std::get<block_removed>(events[2]).hash == hashes[5]);
  CHECK(cache.match(numbers(9, 100), {}).size() == 2);
  CHECK(cache.match(numbers(9, 200), {}).size() == 1);
  CHECK(cache.match(numbers(9), {}).empty());
}

TEST_CASE("a shared block is free only after its last reference") {
  prefix_cache cache(block, 4, 1);
  const auto first = compute(cache, numbers(6));
  const auto second = compute(cache, numbers(7));
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
  prefix_cache cache(block, 2, 1);
  cache.release(compute(cache, numbers(8)));
  const auto reused = cache.match(numbers(9), {});
  REQUIRE(reused.size() == 2);
  CHECK(cache.can_allocate(0, reused));
  CHECK_FALSE(cache.can_allocate(1, reused));
}

TEST_CASE("a block computed twice is stored twice and removed twice") {
  prefix_cache cache(block, 4, 1);
  const auto first = compute(cache, numbers(4));  // a whole block: the cap makes a repeat compute it again
  const auto second = compute(cache, numbers(4));
  CHECK(first[0] != second[0]);
  CHECK(cache.take_events().size() == 2);
  CHECK(cache.cached() == 2);
  cache.release(first);
  cache.release(second);
  std::vector<block_id> fresh;
  cache.allocate(3, fresh);
  CHECK(cache.take_events().size() == 1);  // two blocks were never used
  CHECK(cache.match(numbers(5), {}).size() == 1);
  cache.allocate(1, fresh);
  CHECK(cache.take_events().size() == 1);
  CHECK(cache.match(numbers(5), {}).empty());
}

TEST_CASE("clearing forgets everything and says so") {
  prefix_cache cache(block, 4, 1);
  cache.release(compute(cache, numbers(9)));
  cache.take_events();
  cache.clear();
  const auto events = cache.take_events();
  REQUIRE(events.size() == 1);
  CHECK(std::holds_alternative<all_blocks_cleared>(events[0]));
  CHECK(cache.match(numbers(9), {}).empty());
  std::vector<block_id> fresh;
  cache.allocate(4, fresh);
  CHECK(cache.take_events().empty());
}
