#include "actors/engine/hash_index.hpp"

#include <algorithm>
#include <optional>
#include <random>

#include <doctest/doctest.h>

#include "actors/engine/slab.hpp"

namespace {

using infernex::engine::hash_index;
using infernex::engine::slab;

/// Elements and their hashes, and an index of them.
struct table {
  hash_index index;
  std::vector<std::optional<std::uint64_t>> hashes;

  hash_index::id find(std::uint64_t hash) const {
    return index.find(hash, [&](auto id) { return hashes[id] == hash; });
  }
  void insert(hash_index::id id, std::uint64_t hash) {
    hashes.resize(std::max<std::size_t>(hashes.size(), id + 1));
    hashes[id] = hash;
    index.insert(hash, id);
  }
  void erase(hash_index::id id) {
    index.erase(*hashes[id], id);
    hashes[id].reset();
  }
};

TEST_CASE("an index finds what is in it and nothing else, however crowded and whatever is erased") {
  // Few upper halves, some at the very end: long runs that wrap around; equal tags with different hashes.
  for (const std::uint64_t uppers : {3ULL, 40ULL, 1ULL << 32}) {
    CAPTURE(uppers);
    std::mt19937_64 random(uppers);
    table t;
    std::size_t alive = 0;
    for (int step = 0; step < 3000; ++step) {
      const auto id = static_cast<hash_index::id>(random() % 300);
      if (id < t.hashes.size() && t.hashes[id]) {
        t.erase(id);
        --alive;
      } else {
        const auto hash = ~(random() % uppers << 32) ^ (random() & 0xFFFF'FFFF);
        if (t.find(hash) != hash_index::none) continue;
        t.insert(id, hash);
        ++alive;
      }
      if (step % 10 != 0) continue;
      REQUIRE(t.index.size() == alive);
      bool all_found = true;
      for (hash_index::id each = 0; each < t.hashes.size(); ++each)
        if (t.hashes[each]) all_found = all_found && t.find(*t.hashes[each]) == each;
      REQUIRE(all_found);
      REQUIRE(t.find(random()) == hash_index::none);
      std::size_t visited = 0;
      t.index.for_each([&](auto) { ++visited; });
      REQUIRE(visited == alive);
    }
  }
}

TEST_CASE("an empty index finds nothing and allocates nothing") {
  const hash_index index;
  CHECK(index.find(1, [](auto) { return true; }) == hash_index::none);
  CHECK(index.bytes() == 0);
}

TEST_CASE("a slab gives what was given back out again first, fresh, and never moves what is there") {
  slab<std::vector<int>> elements;
  const auto first = elements.take();
  elements[first].assign(10, 1);
  const auto* address = &elements[first];
  for (int i = 0; i < 10'000; ++i) elements[elements.take()].push_back(i);
  CHECK(&elements[first] == address);
  CHECK(elements.size() == 10'001);
  elements.give_back(first);
  const auto bytes = elements.bytes();
  const auto again = elements.take();
  CHECK(again == first);
  CHECK(elements[again].empty());
  CHECK(elements.size() == 10'001);
  CHECK(elements.bytes() == bytes);
}

}  // namespace
