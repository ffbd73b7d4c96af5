#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "actors/indexer/source.hpp"
#include "tests/unit/indexer/source_setup.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
using setup = source_setup;

/// So many keys from the first on.
std::vector<block_key> keys_from(block_key first, std::size_t count) {
  std::vector<block_key> keys(count);
  std::iota(keys.begin(), keys.end(), first);
  return keys;
}

/// Fills the index with blocks of another instance, until nothing more fits.
void crowd(kv_index& index) {
  index.add_instance("big");
  REQUIRE(index.add("big", keys_from(1'000'000, 40'000)) != 0);
}
void make_room(kv_index& index) {
  index.remove_instance("big");
  while (index.maintain()) {
  }
}

TEST_CASE("keys the index has no room for: not exact, and not asked for while there is none") {
  setup s({.max_instances = 4, .max_bytes = 3'000});
  s.tell(s.agent.change({}, keys_from(1, 3'000)));
  CHECK_FALSE(s.of.exact(s.now));
  unsigned requests = 0;
  for (int second = 0; second < 300; ++second) {
    if (s.asked()) {
      ++requests;
      s.answer(1'000);
    }
    if (second % 2 == 0) s.announce();
    s.pass(1s);
  }
  CHECK_FALSE(s.of.exact(s.now));
  CHECK(s.of.state(s.now) == sync_state::capped);
  CHECK(requests == 0);
}

TEST_CASE("at the byte limit: the rest is followed, nothing is asked, and a snapshot comes when there is room") {
  setup s({.max_instances = 4, .max_bytes = 400'000});
  crowd(s.index);
  s.tell(s.agent.change({}, keys_from(1, 3'000)));
  CHECK(s.of.state(s.now) == sync_state::capped);
  CHECK_FALSE(s.of.exact(s.now));
  CHECK_FALSE(s.asked());
  s.tell(s.agent.change({1}, {5'000}));
  s.announce();
  s.pass(1s);
  CHECK_FALSE(s.asked());
  CHECK(s.counters.mismatches == 0);

  make_room(s.index);
  s.pass(0ms);
  REQUIRE(s.asked());
  CHECK(s.of.request_reason() == "room again");
  s.answer(1'000);
  CHECK(s.of.state(s.now) == sync_state::exact);
  CHECK(s.index.keys_of("e") == 3'000);
}

TEST_CASE("refused for a limit that indexes share: asked for again when another index has made room") {
  auto shared = std::make_shared<byte_budget>(400'000);
  kv_index other({}, shared);
  setup s({}, shared);
  crowd(other);
  s.tell(s.agent.change({}, keys_from(1, 20'000)));
  REQUIRE(s.of.state(s.now) == sync_state::capped);
  s.pass(0ms);
  CHECK_FALSE(s.asked());
  make_room(other);
  s.pass(0ms);
  CHECK(s.asked());
}
}  // namespace
}  // namespace infernex::indexer
