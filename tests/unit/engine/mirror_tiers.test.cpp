#include <doctest/doctest.h>

#include "messages/kv_digest.hpp"
#include "tests/unit/engine/mirror_events.hpp"

namespace {

using namespace infernex;
using namespace infernex::test;

TEST_CASE("holes: a block without the one before it; parents come before children even where events did not") {
  mirror m(small);
  const auto keys = keys_of(0, 3);
  m.apply(stored(1, std::nullopt, 0, 3));
  m.take_difference();
  m.apply(removed_blocks{{1, 2}, fb::KvTier::Device, std::nullopt});
  CHECK_FALSE(m.closed());
  auto change = m.take_difference();
  CHECK_FALSE(change.closed);
  CHECK(change.changes.at(0).removed == std::vector{keys[1], keys[0]});
  m.apply(stored(1, std::nullopt, 0, 1));
  CHECK_FALSE(m.closed());
  m.apply(removed_blocks{{3}, fb::KvTier::Device, std::nullopt});
  CHECK(m.closed());
  m.take_difference();

  m.apply(stored(2, 1, block_size, 2));                            // 2, 3
  m.apply(removed_blocks{{2}, fb::KvTier::Device, std::nullopt});  // a hole for a while
  m.apply(stored(2, 1, block_size, 1));
  change = m.take_difference();
  CHECK(change.closed);
  CHECK(change.changes.at(0).added == std::vector{keys[1], keys[2]});
}

TEST_CASE("tiers: a block is held on each of them apart; only the device can have holes") {
  mirror m(small);
  const auto keys = keys_of(0, 2);
  m.apply(stored(1, std::nullopt, 0, 2));
  m.apply(offloaded({2, 1}, fb::KvTier::Host));
  m.apply(offloaded({2}, fb::KvTier::Disk));
  m.apply(offloaded({77}, fb::KvTier::Host));
  CHECK(m.dropped()[drop_reason::unknown_block] == 1);
  CHECK(m.keys() == 5);
  auto change = m.take_difference();
  REQUIRE(change.changes.size() == 3);
  CHECK(change.changes[1].tier == fb::KvTier::Host);
  CHECK(change.changes[1].added == keys);
  CHECK(change.changes[2].tier == fb::KvTier::Disk);
  CHECK(change.changes[2].added == std::vector{keys[1]});
  std::uint64_t digest = 0;
  for (const auto& each : change.changes)
    for (const auto key : each.added) digest ^= infernex::digest_of(key, each.tier);
  CHECK(m.digest() == digest);
  CHECK(m.closed());

  m.apply(removed_blocks{{2, 1}, fb::KvTier::Device, std::nullopt});
  m.apply(removed_blocks{{1}, fb::KvTier::Host, std::nullopt});
  CHECK(m.closed());
  CHECK(held(m).empty());
  CHECK(held(m, fb::KvTier::Host) == std::vector{keys[1]});
  // Forgotten with its last copy; one that is anywhere can still be named, and come back.
  m.apply(offloaded({1}, fb::KvTier::Host));
  CHECK(m.dropped()[drop_reason::unknown_block] == 2);
  m.apply(offloaded({2}, fb::KvTier::Device));
  CHECK(held(m) == std::vector{keys[1]});
  CHECK_FALSE(m.closed());
}

TEST_CASE("groups: a block stored for two of them is held until both have removed it") {
  mirror m(small);
  auto blocks = stored(1, std::nullopt, 0, 1);
  for (const auto group : {0U, 3U, 3U}) {
    blocks.group = group;
    m.apply(blocks);
  }
  m.apply(removed_blocks{{1}, fb::KvTier::Device, 0});
  m.apply(removed_blocks{{1}, fb::KvTier::Device, 0});  // one too many
  CHECK(m.dropped()[drop_reason::unknown_block] == 1);
  m.apply(removed_blocks{{1}, fb::KvTier::Device, 3});
  CHECK(m.keys() == 1);
  m.apply(removed_blocks{{1}, fb::KvTier::Device, std::nullopt});
  CHECK(m.keys() == 0);
}

TEST_CASE("hundreds of copies of a block") {
  mirror m(small);
  for (int i = 0; i < 600; ++i) m.apply(stored(1, std::nullopt, 0, 1));
  for (int i = 0; i < 600; ++i) {
    REQUIRE(m.keys() == 1);
    m.apply(removed_blocks{{1}, fb::KvTier::Device, std::nullopt});
  }
  CHECK(m.keys() == 0);
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
}

TEST_CASE("copies are counted: by repetition, by tier, and by another hash of the same block") {
  mirror m(small);
  m.apply(stored(1, std::nullopt, 0, 1));
  m.apply(stored(1, std::nullopt, 0, 1));
  m.apply(offloaded({1}, fb::KvTier::Host));
  m.apply(stored(2, std::nullopt, 0, 1));
  CHECK(m.keys() == 2);
  const auto remove = [&m](std::uint64_t hash, fb::KvTier tier) {
    m.apply(removed_blocks{{hash}, tier, std::nullopt});
  };
  remove(1, fb::KvTier::Device);
  remove(1, fb::KvTier::Device);
  CHECK(m.keys() == 2);
  remove(1, fb::KvTier::Device);  // one too many: the CPU copy stays
  CHECK(m.dropped()[drop_reason::unknown_block] == 1);
  remove(1, fb::KvTier::Host);
  CHECK(m.keys() == 1);
  remove(2, fb::KvTier::Device);
  CHECK(m.keys() == 0);
  CHECK(m.digest() == 0);
}

}  // namespace
