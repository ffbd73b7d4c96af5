#include "actors/engine/block_key.hpp"

#include <numeric>
#include <set>

#include <doctest/doctest.h>

namespace {

using namespace infernex::engine;

TEST_CASE("keys chain: a change in one block changes it and all after it") {
  std::vector<std::uint32_t> tokens(64);
  std::iota(tokens.begin(), tokens.end(), 1000U);
  const key_root root{"m", "", "", 16};
  const auto keys = chain_keys(root, tokens, 100);
  REQUIRE(keys.size() == 4);
  auto other = tokens;
  other[20] += 1;
  const auto changed = chain_keys(root, other, 100);
  CHECK(changed[0] == keys[0]);
  for (std::size_t i = 1; i < 4; ++i) CHECK(changed[i] != keys[i]);
  CHECK(next_key(keys[0], std::span(tokens).subspan(16, 16)) == keys[1]);
}

TEST_CASE("model, adapter, salt and block size are part of the root, and cannot run into one another") {
  const std::set<block_key> roots{root_key({"ab", "", "", 16}), root_key({"a", "b", "", 16}),
                                  root_key({"a", "", "b", 16}), root_key({"ab", "", "", 32}),
                                  root_key({"", "ab", "", 16})};
  CHECK(roots.size() == 5);
}

TEST_CASE("only full blocks have keys, and no more than asked for") {
  const std::vector<std::uint32_t> tokens(47, 1);
  CHECK(chain_keys({"m", "", "", 16}, tokens, 100).size() == 2);
  CHECK(chain_keys({"m", "", "", 16}, tokens, 1).size() == 1);
  CHECK(chain_keys({"m", "", "", 48}, tokens, 100).empty());
}

TEST_CASE("an engine never serves the last token from its cache") {
  CHECK(cacheable_blocks(0, 16) == 0);
  CHECK(cacheable_blocks(16, 16) == 0);
  CHECK(cacheable_blocks(17, 16) == 1);
  CHECK(cacheable_blocks(32, 16) == 1);
  CHECK(cacheable_blocks(33, 16) == 2);
  CHECK(cacheable_blocks(33, 0) == 0);
}

}  // namespace
