#include "actors/engine/mirror.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "messages/kv_digest.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;

constexpr std::uint32_t block_size = 4;
const mirror_settings small{"m", std::nullopt, 1000, 100};

/// `count` blocks after `parent` whose tokens start at `token`; hashes are first_hash, first_hash + 1, …
stored_blocks stored(std::uint64_t first_hash, std::optional<std::uint64_t> parent, std::uint32_t token,
                     std::size_t count) {
  stored_blocks blocks;
  blocks.parent = parent;
  blocks.block_size = block_size;
  for (std::size_t i = 0; i < count; ++i) blocks.hashes.push_back(first_hash + i);
  for (std::uint32_t i = 0; i < count * block_size; ++i) blocks.tokens.push_back(token + i);
  return blocks;
}

std::vector<block_key> keys_of(std::uint32_t token, std::size_t count, std::string_view adapter = {},
                               std::string_view salt = {}) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < count * block_size; ++i) tokens.push_back(token + i);
  return chain_keys({"m", adapter, salt, block_size}, tokens, count);
}

std::vector<block_key> sorted(std::vector<block_key> keys) {
  std::ranges::sort(keys);
  return keys;
}

std::vector<block_key> held(const mirror& m, fb::KvTier tier = fb::KvTier::Device) {
  for (auto& [each, keys] : m.all_keys())
    if (each == tier) return keys;
  return {};
}

stored_blocks offloaded(std::vector<std::uint64_t> hashes, block_tier tier) {
  stored_blocks blocks;  // as engines announce it: no tokens
  blocks.hashes = std::move(hashes);
  blocks.tier = tier;
  return blocks;
}

std::uint64_t xor_of(const std::vector<block_key>& keys) {
  std::uint64_t digest = 0;
  for (const auto key : keys) digest ^= key;
  return digest;
}

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
  m.apply(removed_blocks{{3}, block_tier::gpu, std::nullopt});
  auto change = m.take_difference();
  CHECK_FALSE(change.cleared);
  REQUIRE(change.changes.size() == 1);
  CHECK(change.changes[0].tier == fb::KvTier::Device);
  CHECK(change.changes[0].removed.empty());
  CHECK(change.changes[0].added == std::vector{keys[0], keys[1]});
  CHECK(change.closed);
  CHECK(m.take_difference().empty());

  m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
  m.apply(stored(2, 1, block_size, 1));
  CHECK(m.take_difference().empty());

  m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
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

TEST_CASE("holes: a block without the one before it; parents come before children even where events did not") {
  mirror m(small);
  const auto keys = keys_of(0, 3);
  m.apply(stored(1, std::nullopt, 0, 3));
  m.take_difference();
  m.apply(removed_blocks{{1, 2}, block_tier::gpu, std::nullopt});
  CHECK_FALSE(m.closed());
  auto change = m.take_difference();
  CHECK_FALSE(change.closed);
  CHECK(change.changes.at(0).removed == std::vector{keys[1], keys[0]});
  m.apply(stored(1, std::nullopt, 0, 1));
  CHECK_FALSE(m.closed());
  m.apply(removed_blocks{{3}, block_tier::gpu, std::nullopt});
  CHECK(m.closed());
  m.take_difference();

  m.apply(stored(2, 1, block_size, 2));                         // 2, 3
  m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});  // a hole for a while
  m.apply(stored(2, 1, block_size, 1));
  change = m.take_difference();
  CHECK(change.closed);
  CHECK(change.changes.at(0).added == std::vector{keys[1], keys[2]});
}

TEST_CASE("tiers: a block is held on each of them apart; only the device can have holes") {
  mirror m(small);
  const auto keys = keys_of(0, 2);
  m.apply(stored(1, std::nullopt, 0, 2));
  m.apply(offloaded({2, 1}, block_tier::cpu));
  m.apply(offloaded({2}, block_tier::disk));
  m.apply(offloaded({77}, block_tier::cpu));
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

  m.apply(removed_blocks{{2, 1}, block_tier::gpu, std::nullopt});
  m.apply(removed_blocks{{1}, block_tier::cpu, std::nullopt});
  CHECK(m.closed());
  CHECK(held(m).empty());
  CHECK(held(m, fb::KvTier::Host) == std::vector{keys[1]});
  // Forgotten with its last copy; one that is anywhere can still be named, and come back.
  m.apply(offloaded({1}, block_tier::cpu));
  CHECK(m.dropped()[drop_reason::unknown_block] == 2);
  m.apply(offloaded({2}, block_tier::gpu));
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
  m.apply(removed_blocks{{1}, block_tier::gpu, 0});
  m.apply(removed_blocks{{1}, block_tier::gpu, 0});  // one too many
  CHECK(m.dropped()[drop_reason::unknown_block] == 1);
  m.apply(removed_blocks{{1}, block_tier::gpu, 3});
  CHECK(m.keys() == 1);
  m.apply(removed_blocks{{1}, block_tier::gpu, std::nullopt});
  CHECK(m.keys() == 0);
}

TEST_CASE("hundreds of copies of a block") {
  mirror m(small);
  for (int i = 0; i < 600; ++i) m.apply(stored(1, std::nullopt, 0, 1));
  for (int i = 0; i < 600; ++i) {
    REQUIRE(m.keys() == 1);
    m.apply(removed_blocks{{1}, block_tier::gpu, std::nullopt});
  }
  CHECK(m.keys() == 0);
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
}

TEST_CASE("copies are counted: by repetition, by tier, and by another hash of the same block") {
  mirror m(small);
  m.apply(stored(1, std::nullopt, 0, 1));
  m.apply(stored(1, std::nullopt, 0, 1));
  m.apply(offloaded({1}, block_tier::cpu));
  m.apply(stored(2, std::nullopt, 0, 1));
  CHECK(m.keys() == 2);
  const auto remove = [&m](std::uint64_t hash, block_tier tier) {
    m.apply(removed_blocks{{hash}, tier, std::nullopt});
  };
  remove(1, block_tier::gpu);
  remove(1, block_tier::gpu);
  CHECK(m.keys() == 2);
  remove(1, block_tier::gpu);  // one too many: the CPU copy stays
  CHECK(m.dropped()[drop_reason::unknown_block] == 1);
  remove(1, block_tier::cpu);
  CHECK(m.keys() == 1);
  remove(2, block_tier::gpu);
  CHECK(m.keys() == 0);
  CHECK(m.digest() == 0);
}

TEST_CASE("blocks whose parent is not known wait for it, in any depth, and can be removed meanwhile") {
  mirror m(small);
  m.apply(stored(5, 4, 4 * block_size, 2));  // 5, 6
  m.apply(stored(3, 2, 2 * block_size, 2));  // 3, 4
  m.apply(removed_blocks{{3}, block_tier::gpu, std::nullopt});
  m.apply(removed_blocks{{6}, block_tier::gpu, std::nullopt});
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
  m.apply(removed_blocks{{5, 6}, block_tier::gpu, std::nullopt});
  CHECK(m.parked() == 0);
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
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

TEST_CASE("an engine that changes the size of its blocks: the others are not used, and said so") {
  mirror m(small);
  m.apply(stored(1, std::nullopt, 0, 2));
  auto larger = stored(7, std::nullopt, 0, 2);
  larger.hashes.pop_back();
  larger.block_size *= 2;
  m.apply(larger);
  CHECK(m.keys() == 2);
  CHECK(m.block_size() == block_size);
  CHECK(m.other_block_size() == 2 * block_size);
  CHECK(m.dropped()[drop_reason::block_size_mismatch] == 1);
  CHECK_FALSE(m.complete());
  auto damaged = stored(1, std::nullopt, 0, 1);
  damaged.tokens.pop_back();
  m.apply(damaged);
  CHECK(m.dropped()[drop_reason::malformed_event] == 1);
  m.clear();
  m.apply(larger);  // another life
  CHECK(m.block_size() == 2 * block_size);
  CHECK(m.keys() == 1);
}

std::vector<block_key> keys_at(std::uint32_t size, std::size_t tokens) {
  std::vector<std::uint32_t> prompt(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) prompt[i] = i;
  return chain_keys({"m", "", "", size}, prompt, tokens);
}

TEST_CASE("another canonical size: a block is held while all of the engine's that overlap it are") {
  SUBCASE("larger, over events and their parents") {
    mirror m({"m", 16, 1000, 100});
    m.apply(stored(1, std::nullopt, 0, 3));
    CHECK(m.keys() == 0);
    CHECK(m.block_size() == 16);
    CHECK(m.engine_block_size() == block_size);
    m.apply(stored(4, 3, 3 * block_size, 5));
    CHECK(held(m) == keys_at(16, 32));
    m.apply(removed_blocks{{3}, block_tier::gpu, std::nullopt});
    CHECK(held(m) == std::vector{keys_at(16, 32)[1]});
    CHECK_FALSE(m.closed());
    m.apply(stored(3, 2, 2 * block_size, 1));
    CHECK(held(m) == keys_at(16, 32));
    CHECK(m.closed());
  }
  SUBCASE("smaller") {
    mirror m({"m", 2, 1000, 100});
    m.apply(stored(1, std::nullopt, 0, 2));
    CHECK(held(m) == keys_at(2, 8));
    m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
    CHECK(held(m) == keys_at(2, 4));
  }
  SUBCASE("neither divides the other, and only what overlaps counts") {
    mirror m({"m", 3, 1000, 100});
    m.apply(stored(1, std::nullopt, 0, 3));
    const auto keys = keys_at(3, 12);
    CHECK(held(m) == keys);
    m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
    CHECK(held(m) == std::vector{keys[0], keys[3]});
  }
  SUBCASE("tier by tier") {
    mirror m({"m", 8, 1000, 100});
    m.apply(stored(1, std::nullopt, 0, 2));
    m.apply(offloaded({1}, block_tier::cpu));
    m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
    CHECK(m.keys() == 0);  // half of it here, half of it nowhere
    m.apply(stored(2, 1, block_size, 1));
    m.apply(offloaded({2}, block_tier::cpu));
    CHECK(held(m) == keys_at(8, 8));
    CHECK(held(m, fb::KvTier::Host) == keys_at(8, 8));
  }
}

TEST_CASE("another canonical size: an image in any overlapping block, once, and in all that follow") {
  const auto with_image = [](std::uint32_t size, std::uint32_t canonical) {
    stored_blocks blocks;
    blocks.block_size = size;
    for (std::uint32_t i = 0; i < 12; ++i) blocks.tokens.push_back(i);
    for (std::uint32_t i = 0; i < 12 / size; ++i) {
      blocks.hashes.push_back(1 + i);
      // The image lies at tokens 5 to 8.
      blocks.extras.push_back(i * size <= 8 && (i + 1) * size > 5 ? "image" : "");
    }
    mirror m({"m", canonical, 1000, 100});
    m.apply(blocks);
    return held(m);
  };
  const auto plain = keys_at(4, 12);
  const auto keys = with_image(4, 4);
  CHECK(keys[0] == plain[0]);
  CHECK(keys[1] != plain[1]);
  CHECK(keys[2] != plain[2]);
  CHECK(with_image(2, 4) == keys);
  CHECK(with_image(1, 4) == keys);
  CHECK(with_image(12, 4)[0] != plain[0]);  // where in its block the image lies the engine does not say
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
  m.apply(removed_blocks{{1}, block_tier::gpu, 1});
  CHECK(m.keys() == 1);
  CHECK(m.dropped()[drop_reason::sparse_group] == 1);
  CHECK(m.dropped()[drop_reason::unknown_block] == 0);
  m.apply(removed_blocks{{1}, block_tier::gpu, 0});
  CHECK(m.keys() == 0);
}

}  // namespace
