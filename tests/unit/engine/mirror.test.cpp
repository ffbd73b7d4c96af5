#include "actors/engine/mirror.hpp"

#include <algorithm>

#include <doctest/doctest.h>

namespace {

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

std::uint64_t digest_of(const std::vector<block_key>& keys) {
  std::uint64_t digest = 0;
  for (const auto key : keys) digest ^= key;
  return digest;
}

TEST_CASE("stored blocks get the keys that a prompt's tokens give, whatever the engine's hashes are") {
  mirror m(small);
  m.apply(stored(100, std::nullopt, 0, 2));
  m.apply(stored(7, 101, 2 * block_size, 1));
  CHECK(sorted(m.all_keys()) == sorted(keys_of(0, 3)));
  CHECK(m.keys() == 3);
  CHECK(m.digest() == digest_of(keys_of(0, 3)));
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
  CHECK(sorted(m.all_keys()) == sorted({keys_of(0, 1)[0], keys_of(0, 1, "ada")[0], keys_of(0, 1, {}, "s")[0]}));
}

TEST_CASE("a block that depends on an image has a key no plain prompt has, and so have its successors") {
  mirror m(small);
  auto blocks = stored(1, std::nullopt, 0, 3);
  blocks.extras = {"", "image", ""};
  m.apply(blocks);
  const auto plain = keys_of(0, 3);
  const auto held = m.all_keys();
  CHECK(std::ranges::count(held, plain[0]) == 1);
  CHECK(std::ranges::count(held, plain[1]) == 0);
  CHECK(std::ranges::count(held, plain[2]) == 0);
  CHECK(m.keys() == 3);
}

TEST_CASE("differences: what came and went since the last one, nothing that did both") {
  mirror m(small);
  const auto keys = keys_of(0, 3);
  m.apply(stored(1, std::nullopt, 0, 3));
  m.apply(removed_blocks{{3}, block_tier::gpu, std::nullopt});
  auto change = m.take_difference();
  CHECK_FALSE(change.cleared);
  CHECK(change.removed.empty());
  CHECK(sorted(change.added) == sorted({keys[0], keys[1]}));
  CHECK(m.take_difference().empty());

  m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
  m.apply(stored(2, 1, block_size, 1));
  CHECK(m.take_difference().empty());

  m.apply(removed_blocks{{2}, block_tier::gpu, std::nullopt});
  CHECK(m.take_difference().removed == std::vector{keys[1]});

  m.apply(all_cleared{});
  m.apply(stored(9, std::nullopt, 50, 1));
  change = m.take_difference();
  CHECK(change.cleared);
  CHECK(change.removed.empty());
  CHECK(change.added == keys_of(50, 1));
  CHECK(m.digest() == keys_of(50, 1)[0]);
}

TEST_CASE("copies are counted: by repetition, by tier, and by another hash of the same block") {
  mirror m(small);
  m.apply(stored(1, std::nullopt, 0, 1));
  m.apply(stored(1, std::nullopt, 0, 1));
  stored_blocks on_cpu;  // as engines announce offloading: no tokens
  on_cpu.hashes = {1};
  on_cpu.tier = block_tier::cpu;
  m.apply(on_cpu);
  m.apply(stored(2, std::nullopt, 0, 1));
  CHECK(m.keys() == 1);
  const auto remove = [&m](std::uint64_t hash, block_tier tier) {
    m.apply(removed_blocks{{hash}, tier, std::nullopt});
  };
  remove(1, block_tier::gpu);
  remove(1, block_tier::gpu);
  CHECK(m.keys() == 1);
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
  CHECK(sorted(m.all_keys()) == sorted({keys[0], keys[1], keys[3], keys[4]}));
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

TEST_CASE("another block size than the configured one is not used, and said so") {
  mirror m({"m", 8, 100, 100});
  m.apply(stored(1, std::nullopt, 0, 2));
  CHECK(m.keys() == 0);
  CHECK(m.block_size() == 8);
  CHECK(m.other_block_size() == block_size);
  CHECK(m.dropped()[drop_reason::block_size_mismatch] == 1);
  auto damaged = stored(1, std::nullopt, 0, 1);
  damaged.tokens.pop_back();
  m.apply(damaged);
  CHECK(m.dropped()[drop_reason::malformed_event] == 1);
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
