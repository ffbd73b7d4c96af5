#include <doctest/doctest.h>

#include "tests/unit/engine/mirror_events.hpp"

namespace {

using namespace infernex;
using namespace infernex::test;

TEST_CASE("stored blocks get the keys that a prompt's tokens give, whatever the engine's hashes are") {
  mirror m(small);
  m.apply(stored(100, std::nullopt, 0, 2));
  m.apply(stored(7, 101, 2 * block_size, 1));
  CHECK(sorted(held(m)) == sorted(keys_of(0, 3)));
  CHECK(m.keys() == 3);
  CHECK(m.digest() == xor_of(keys_of(0, 3)));
  CHECK(m.block_size() == block_size);
  CHECK(m.complete());
}

TEST_CASE("adapter and salt make chains of their own") {
  mirror m(small);
  auto adapted = stored(1, std::nullopt, 0, 1);
  adapted.adapter = "ada";
  auto salted = stored(2, std::nullopt, 0, 1);
  salted.salt = "s";
  m.apply(stored(3, std::nullopt, 0, 1));
  m.apply(adapted);
  m.apply(salted);
  CHECK(sorted(held(m)) == sorted({keys_of(0, 1)[0], keys_of(0, 1, "ada")[0], keys_of(0, 1, {}, "s")[0]}));
}

TEST_CASE("a block that depends on an image has a key no plain prompt has, and so have its successors") {
  mirror m(small);
  auto blocks = stored(1, std::nullopt, 0, 3);
  blocks.extras = {"", "image", ""};
  m.apply(blocks);
  const auto plain = keys_of(0, 3);
  const auto keys = held(m);
  CHECK(std::ranges::count(keys, plain[0]) == 1);
  CHECK(std::ranges::count(keys, plain[1]) == 0);
  CHECK(std::ranges::count(keys, plain[2]) == 0);
  CHECK(m.keys() == 3);
}

TEST_CASE("differences: what came and went since the last one, nothing that did both") {
  mirror m(small);
  const auto keys = keys_of(0, 3);
  m.apply(stored(1, std::nullopt, 0, 3));
  m.apply(removed_blocks{{3}, fb::KvTier::Device, std::nullopt});
  auto change = m.take_difference();
  CHECK_FALSE(change.cleared);
  REQUIRE(change.changes.size() == 1);
  CHECK(change.changes[0].tier == fb::KvTier::Device);
  CHECK(change.changes[0].removed.empty());
  CHECK(change.changes[0].added == std::vector{keys[0], keys[1]});
  CHECK(change.closed);
  CHECK(m.take_difference().empty());

  m.apply(removed_blocks{{2}, fb::KvTier::Device, std::nullopt});
  m.apply(stored(2, 1, block_size, 1));
  CHECK(m.take_difference().empty());

  m.apply(removed_blocks{{2}, fb::KvTier::Device, std::nullopt});
  CHECK(m.take_difference().changes.at(0).removed == std::vector{keys[1]});

  m.apply(all_cleared{});
  m.apply(stored(9, std::nullopt, 50, 1));
  change = m.take_difference();
  CHECK(change.cleared);
  REQUIRE(change.changes.size() == 1);
  CHECK(change.changes[0].removed.empty());
  CHECK(change.changes[0].added == keys_of(50, 1));
  CHECK(m.digest() == keys_of(50, 1)[0]);
}

TEST_CASE("blocks whose parent is not known wait for it, in any depth, and can be removed meanwhile") {
  mirror m(small);
  m.apply(stored(5, 4, 4 * block_size, 2));  // 5, 6
  m.apply(stored(3, 2, 2 * block_size, 2));  // 3, 4
  m.apply(removed_blocks{{3}, fb::KvTier::Device, std::nullopt});
  m.apply(removed_blocks{{6}, fb::KvTier::Device, std::nullopt});
  CHECK(m.keys() == 0);
  CHECK(m.parked() == 4);
  CHECK_FALSE(m.complete());
  m.apply(stored(1, std::nullopt, 0, 2));  // 1, 2
  CHECK(m.parked() == 0);
  CHECK(m.complete());
  const auto keys = keys_of(0, 6);
  CHECK(sorted(held(m)) == sorted({keys[0], keys[1], keys[3], keys[4]}));
}

TEST_CASE("parked blocks that are all removed leave nothing behind") {
  mirror m(small);
  m.apply(stored(5, 4, 0, 2));
  m.apply(removed_blocks{{5, 6}, fb::KvTier::Device, std::nullopt});
  CHECK(m.parked() == 0);
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
}

TEST_CASE("a copy without tokens of a block that waits for its parent waits too; of an unknown block it is missing") {
  for (const std::optional<std::uint32_t> size : {std::optional<std::uint32_t>(), std::optional<std::uint32_t>(8)}) {
    mirror m({"m", size, 1000, 100});
    m.apply(stored(3, 2, 2 * block_size, 2));  // 3, 4
    m.apply(offloaded({4, 3}, fb::KvTier::Host));
    m.apply(offloaded({4}, fb::KvTier::Disk));
    m.apply(removed_blocks{{4}, fb::KvTier::Disk, std::nullopt});
    m.apply(removed_blocks{{3, 4}, fb::KvTier::Device, std::nullopt});
    CHECK(m.parked() == 2);
    CHECK(m.dropped()[drop_reason::unknown_block] == 0);
    m.apply(stored(1, std::nullopt, 0, 2));  // 1, 2
    CHECK(m.complete());
    const auto keys = chain_keys({"m", "", "", size.value_or(block_size)}, stored(1, std::nullopt, 0, 4).tokens, 4);
    const auto half = static_cast<std::ptrdiff_t>(keys.size() / 2);
    CHECK(held(m) == std::vector(keys.begin(), keys.begin() + half));
    CHECK(held(m, fb::KvTier::Host) == std::vector(keys.begin() + half, keys.end()));
    CHECK(held(m, fb::KvTier::Disk).empty());

    m.apply(removed_blocks{{99}, fb::KvTier::Host, std::nullopt});
    CHECK(m.complete());  // that a block is gone that was never here is no loss
    m.apply(offloaded({99}, fb::KvTier::Host));
    CHECK_FALSE(m.complete());
    CHECK(m.dropped()[drop_reason::unknown_block] == 2);
  }
}

TEST_CASE("parked blocks are bounded by their memory, which is counted") {
  mirror m({"m", std::nullopt, 1000, 1000, 10'000});
  const auto empty = m.bytes();
  m.apply(stored(20, 19, 0, 50));
  CHECK(m.parked() == 50);
  CHECK(m.bytes() > empty + 50 * block_size * sizeof(std::uint32_t));
  auto large = stored(90, 89, 0, 1);
  large.extras = {std::string(10'000, 'x')};
  m.apply(large);
  CHECK(m.parked() == 50);
  CHECK(m.dropped()[drop_reason::parking_full] == 1);
  CHECK_FALSE(m.complete());
  removed_blocks all;
  for (std::uint64_t hash = 20; hash < 70; ++hash) all.hashes.push_back(hash);
  m.apply(all);
  CHECK(m.parked() == 0);
  CHECK(m.bytes() <= empty + 100);
}

TEST_CASE("bounds: over them blocks are left out and counted") {
  mirror m({"m", std::nullopt, 3, 4});
  m.apply(stored(1, std::nullopt, 0, 5));
  CHECK(m.keys() == 3);
  CHECK(m.dropped()[drop_reason::mirror_full] == 2);
  m.apply(stored(20, 19, 0, 4));
  m.apply(stored(30, 29, 0, 1));
  CHECK(m.parked() == 4);
  CHECK(m.dropped()[drop_reason::parking_full] == 1);
  CHECK_FALSE(m.complete());
  m.clear();
  CHECK(m.complete());
}

TEST_CASE("memory is counted, and given back") {
  mirror m({"m", std::nullopt, 1'000'000, 100});
  std::uint64_t hash = 1;
  for (std::uint32_t prompt = 0; prompt < 200; ++prompt, hash += 100)
    m.apply(stored(hash, std::nullopt, prompt * 1000, 100));
  CHECK(m.keys() == 20'000);
  m.take_difference();
  CHECK(m.bytes() > 20'000 * 50);
  CHECK(m.bytes() < 20'000 * 100);
  m.clear();
  CHECK(m.bytes() < 1000);
}

TEST_CASE("groups that do not hold every token are ignored, their removals too") {
  mirror m(small);
  auto window = stored(1, std::nullopt, 0, 1);
  window.group = 1;
  window.attention_kind = "sliding_window";
  auto full = stored(1, std::nullopt, 0, 1);
  full.group = 0;
  full.attention_kind = "full_attention";
  m.apply(window);
  CHECK(m.keys() == 0);
  m.apply(full);
  m.apply(removed_blocks{{1}, fb::KvTier::Device, 1});
  CHECK(m.keys() == 1);
  CHECK(m.dropped()[drop_reason::sparse_group] == 1);
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
  m.apply(removed_blocks{{1}, fb::KvTier::Device, 0});
  CHECK(m.keys() == 0);
}

}  // namespace
