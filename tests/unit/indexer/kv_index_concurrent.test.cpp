// One writer and several readers at once; run under ThreadSanitizer as well (preset tsan).

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "actors/indexer/kv_index.hpp"

namespace infernex::indexer {
namespace {

std::vector<block_key> range(block_key from, std::size_t count) {
  std::vector<block_key> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = from + i;
  return keys;
}

TEST_CASE("readers always see blocks that stay, and never more than was ever added, while tables grow") {
  kv_index index;
  // `fixed` holds its chain throughout; the others come, grow, are cleared and go.
  const auto fixed = range(1, 64);
  index.add_instance("fixed");
  index.add("fixed", fixed);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> lookups{0};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&] {
      kv_index::reader reader(index);
      auto longer = range(1, 80);
      while (!stop) {
        bool seen = false;
        for (const auto& m : reader.lookup(longer)) {
          if (m.instance == "fixed") {
            seen = true;
            if (m.blocks != 64) ++wrong;
          } else if (!m.instance.starts_with("guest-") || m.blocks > 32) {
            ++wrong;  // guests hold at most the first 32 blocks
          }
        }
        if (!seen) ++wrong;
        ++lookups;
      }
    });
  std::mt19937 random(7);
  for (int round = 0; round < 600 || (lookups < 500 && round < 1'000'000); ++round) {
    const auto name = "guest-" + std::to_string(random() % 90);
    index.add_instance(name);
    index.set_closed(name, false);
    index.add(name, std::span(fixed).first(random() % 33));
    index.add(name, range(1'000 + random() % 200'000, 300));
    switch (random() % 4) {
      case 0:
        index.clear(name);
        break;
      case 1:
        index.remove_instance(name);
        break;
      case 2:
        index.remove(name, std::span(fixed).subspan(random() % 32));
        break;
      default:
        break;
    }
  }
  stop = true;
  for (auto& t : readers) t.join();
  CHECK(wrong == 0);
  CHECK(lookups >= 500);
}

TEST_CASE("once clear or remove_instance has returned, no reader finds the instance, though its slot is reused") {
  kv_index index({.max_instances = 3840, .max_bytes = 256 << 20});
  const auto chain = range(1, 40);
  // Instance names carry their round. Before round n is added, every earlier one is gone: a lookup that
  // begins then must find none of them, and whoever inherits their slots must not inherit their blocks.
  std::atomic<std::uint64_t> oldest{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> lookups{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r)
    readers.emplace_back([&] {
      kv_index::reader reader(index);
      while (!stop) {
        const auto not_before = oldest.load();
        for (const auto& m : reader.lookup(chain)) {
          const auto round = std::stoull(std::string(m.instance));
          if (round < not_before) ++wrong;
          if (m.blocks > 10 + round % 30) ++wrong;
        }
        ++lookups;
      }
    });
  std::uint64_t round = 0;
  for (; round < 6'000 || (lookups < 500 && round < 1'000'000); ++round) {
    const auto name = std::to_string(round);
    index.add_instance(name);
    index.add(name, std::span(chain).first(10 + round % 30));
    if (round % 2) index.clear(name);
    index.remove_instance(name);
    oldest = round + 1;
  }
  stop = true;
  for (auto& t : readers) t.join();
  CHECK(wrong == 0);
  CHECK(lookups >= 500);
}

TEST_CASE("readers may come and go at any time") {
  kv_index index;
  index.add_instance("a");
  const auto chain = range(1, 8);
  index.add("a", chain);
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        kv_index::reader reader(index);
        const auto found = reader.lookup(chain);
        if (found.size() != 1 || found[0].blocks != 8) ++wrong;
      }
    });
  for (block_key k = 100; k < 40'000; k += 100) index.add("a", range(k, 100));
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace infernex::indexer
