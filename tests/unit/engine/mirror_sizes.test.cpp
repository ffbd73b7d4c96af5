#include <doctest/doctest.h>

#include "tests/unit/engine/mirror_events.hpp"

namespace {

using namespace infernex;
using namespace infernex::test;

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
    m.apply(removed_blocks{{3}, fb::KvTier::Device, std::nullopt});
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
    m.apply(removed_blocks{{2}, fb::KvTier::Device, std::nullopt});
    CHECK(held(m) == keys_at(2, 4));
  }
  SUBCASE("neither divides the other, and only what overlaps counts") {
    mirror m({"m", 3, 1000, 100});
    m.apply(stored(1, std::nullopt, 0, 3));
    const auto keys = keys_at(3, 12);
    CHECK(held(m) == keys);
    m.apply(removed_blocks{{2}, fb::KvTier::Device, std::nullopt});
    CHECK(held(m) == std::vector{keys[0], keys[3]});
  }
  SUBCASE("tier by tier") {
    mirror m({"m", 8, 1000, 100});
    m.apply(stored(1, std::nullopt, 0, 2));
    m.apply(offloaded({1}, fb::KvTier::Host));
    m.apply(removed_blocks{{2}, fb::KvTier::Device, std::nullopt});
    CHECK(m.keys() == 0);  // half of it here, half of it nowhere
    m.apply(stored(2, 1, block_size, 1));
    m.apply(offloaded({2}, fb::KvTier::Host));
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

}  // namespace
