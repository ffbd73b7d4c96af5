#include "actors/engine/chain_set.hpp"

#include <doctest/doctest.h>

namespace {

using namespace infernex;
using namespace infernex::engine;
constexpr auto device = fb::KvTier::Device;

TEST_CASE("a key has as many holders as there are, on each tier its own") {
  chain_set set;
  const auto at = set.attach(7, chain_set::none);
  constexpr int many = 70'000;
  for (int i = 0; i < many; ++i) set.hold(at, device);
  set.hold(at, fb::KvTier::Disk);
  CHECK(set.keys() == 2);
  for (int i = 1; i < many; ++i) set.release(at, device);
  CHECK(set.keys() == 2);
  set.release(at, device);
  CHECK(set.keys() == 1);
  REQUIRE(set.take_difference().changes.size() == 1);
  set.release(at, fb::KvTier::Disk);
  set.settle(at);
  CHECK(set.keys() == 0);
  CHECK(set.digest() == 0);
  CHECK(set.size() == 1);  // until the difference has told of it
  CHECK(set.take_difference().changes.at(0).removed == std::vector<block_key>{7});
  CHECK(set.size() == 0);
}

TEST_CASE("an entry stays while another follows it, and its place in the chain with it") {
  chain_set set;
  const auto first = set.attach(1, chain_set::none);
  set.hold(first, device);
  const auto second = set.attach(2, first);
  set.hold(second, device);
  set.take_difference();
  set.release(first, device);
  set.settle(first);
  CHECK_FALSE(set.closed());
  set.take_difference();
  CHECK(set.size() == 2);
  CHECK(set.attach(1, chain_set::none) == first);
  set.hold(first, device);
  CHECK(set.closed());
  set.release(first, device);
  set.settle(first);
  set.release(second, device);
  set.settle(second);
  CHECK(set.closed());
  CHECK(set.take_difference().changes.at(0).removed == std::vector<block_key>{2});
  CHECK(set.size() == 0);
}

TEST_CASE("a pinned entry is held nowhere, and gone when it is let go") {
  chain_set set;
  const auto first = set.attach(1, chain_set::none);
  const auto second = set.attach(2, first);
  set.pin(first);
  set.pin(second);
  CHECK(set.keys() == 0);
  CHECK(set.take_difference().empty());
  set.unpin(first);
  CHECK(set.size() == 2);
  set.unpin(second);
  CHECK(set.size() == 0);
}

}  // namespace
