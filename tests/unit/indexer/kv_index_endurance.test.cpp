// A writer that does everything a writer can, without a pause, and three readers that know what they must and must not
// see. For as many seconds as INFERNEX_ENDURANCE_SECONDS says: one, or 60 under ThreadSanitizer (tests/run).

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "actors/indexer/kv_index.hpp"

namespace infernex::indexer {
namespace {

using std::chrono::steady_clock;

std::chrono::seconds wanted_seconds() {
  const auto* text = std::getenv("INFERNEX_ENDURANCE_SECONDS");
  return std::chrono::seconds(text && *text ? std::max(1, std::atoi(text)) : 1);
}

std::vector<block_key> range(block_key from, std::size_t count) {
  std::vector<block_key> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = from + i;
  return keys;
}

constexpr std::size_t trunk_blocks = 96;
constexpr std::size_t guest_most = 48;

/// What every reader looks up, and what each instance may show of it:
/// - `fixed`: all of the trunk on the device, always.
/// - `layered`: the first third on the device, then on the host, then on disk, always.
/// - `guest-N`: at most `guest_most` leading blocks; the writer never adds more.
/// - `round-N`: those before `oldest` are gone.
struct scene {
  kv_index index{{.max_instances = 512, .max_bytes = 512 << 20}};
  const std::vector<block_key> trunk = range(1, trunk_blocks);
  std::atomic<std::uint64_t> oldest{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> lookups{0};
};

bool is_right(const match& m, std::uint64_t not_before) {
  constexpr auto third = static_cast<std::uint32_t>(trunk_blocks / 3);
  if (m.device_blocks > m.host_blocks || m.host_blocks > m.blocks) return false;
  if (m.instance == "fixed") return m.device_blocks == trunk_blocks && m.blocks == trunk_blocks;
  if (m.instance == "layered")
    return m.device_blocks == third && m.host_blocks == 2 * third && m.blocks == trunk_blocks;
  if (m.instance.starts_with("round-"))
    return std::stoull(std::string(m.instance.substr(6))) >= not_before && m.blocks <= guest_most;
  return m.instance.starts_with("guest-") && m.blocks <= guest_most;
}

void read(scene& all, unsigned seed) {
  std::mt19937 random(seed);
  auto reader = std::make_unique<kv_index::reader>(all.index);
  while (!all.stop) {
    if (random() % 5'000 == 0) {
      reader.reset();
      reader = std::make_unique<kv_index::reader>(all.index);
    }
    const auto not_before = all.oldest.load();
    const auto found = random() % 4 ? reader->lookup(all.trunk) : reader->walk(all.trunk);
    bool fixed = false;
    bool layered = false;
    for (const auto& m : found) {
      fixed = fixed || m.instance == "fixed";
      layered = layered || m.instance == "layered";
      if (!is_right(m, not_before)) ++all.wrong;
    }
    if (!fixed || !layered) ++all.wrong;
    if (random() % 200 == 0) {
      std::size_t listed = 0;
      for (std::uint32_t part = 0; part < kv_index::key_parts; ++part)
        reader->each_key("fixed", part, [&listed](block_key) { ++listed; });
      if (listed != trunk_blocks) ++all.wrong;
    }
    ++all.lookups;
  }
}

/// The writer's own account of the guests' other blocks, checked against the index's figures.
class writer {
 public:
  explicit writer(scene& all) : all_(all) {}

  void step() {
    const auto name = "guest-" + std::to_string(random_() % 120);
    auto& index = all_.index;
    const auto place = random_() % 16;
    if (place == 0) {
      index.remove_instance(name);
      held_.erase(name);
      return;
    }
    if (!index.add_instance(name)) return;
    auto& held = held_[name];
    if (place == 1) {
      index.clear(name);
      held.clear();
      return;
    }
    // Leading blocks of the trunk without a hole: a true promise. And a few others, of its own.
    index.set_closed(name, false);
    const auto on = place < 5 ? static_cast<tier>(1 + random_() % 2) : tier::Device;
    if (random_() % 3 == 0) {
      const auto from = random_() % guest_most;
      change(name, held, std::span(all_.trunk).subspan(from, guest_most - from), on, false);
    } else {
      change(name, held, std::span(all_.trunk).first(random_() % (guest_most + 1)), on, true);
    }
    const auto own = range(1'000'000 + random_() % 500'000, 1 + random_() % 200);
    change(name, held, own, on, random_() % 3 != 0);
    if (is_prefix(held)) index.set_closed(name, true);
    if (index.keys_of(name) != held.size()) ++all_.wrong;
  }

  /// Slots change hands as fast as they can.
  void churn(std::uint64_t round) {
    auto& index = all_.index;
    const auto name = "round-" + std::to_string(round);
    index.add_instance(name);
    index.add(name, std::span(all_.trunk).first(1 + round % guest_most));
    if (round % 3 == 0) index.clear(name);
    index.remove_instance(name);
    all_.oldest = round + 1;
  }

  /// All guests go: what was grown shrinks again, and grows anew.
  void raze() {
    for (const auto& [name, held] : held_) all_.index.remove_instance(name);
    held_.clear();
    while (all_.index.maintain()) continue;
  }

 private:
  using blocks = std::set<std::pair<tier, block_key>>;

  void change(const std::string& name, blocks& held, std::span<const block_key> keys, tier on, bool add) {
    if (add)
      all_.index.add(name, keys, on);
    else
      all_.index.remove(name, keys, on);
    for (const auto key : keys) add ? void(held.emplace(on, key)) : void(held.erase({on, key}));
  }
  /// Of the trunk on the device; blocks of its own have none before them and so no hole.
  static bool is_prefix(const blocks& held) {
    block_key next = 1;
    for (const auto& [on, key] : held) {
      if (on != tier::Device || key > trunk_blocks) break;
      if (key != next++) return false;
    }
    return true;
  }

  scene& all_;
  std::mt19937 random_{11};
  std::map<std::string, blocks> held_;
};

TEST_CASE("a writer, readers, growth, clears, tiers and reclamation at once, for as long as asked") {
  scene all;
  all.index.add_instance("fixed");
  all.index.add("fixed", all.trunk);
  all.index.set_closed("fixed", true);
  all.index.add_instance("layered");
  const auto third = trunk_blocks / 3;
  all.index.add("layered", std::span(all.trunk).first(third));
  all.index.add("layered", std::span(all.trunk).subspan(third, third), tier::Host);
  all.index.add("layered", std::span(all.trunk).subspan(2 * third), tier::Disk);

  std::vector<std::thread> readers;
  for (unsigned r = 0; r < 3; ++r) readers.emplace_back([&all, r] { read(all, r); });
  writer by(all);
  const auto until = steady_clock::now() + wanted_seconds();
  std::uint64_t round = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t most_keys = 0;
  for (; steady_clock::now() < until || all.lookups < 100; ++round) {
    by.step();
    by.churn(round);
    most_bytes = std::max(most_bytes, all.index.bytes());
    most_keys = std::max(most_keys, all.index.distinct_keys());
    if (round % 400 == 399) by.raze();
  }
  all.stop = true;
  for (auto& each : readers) each.join();
  MESSAGE(round, " rounds of the writer, ", all.lookups.load(), " lookups, at most ", most_keys, " keys in ",
          most_bytes, " bytes");
  CHECK(all.wrong == 0);
  CHECK(most_bytes <= all.index.max_bytes());
  CHECK(all.index.refused() == 0);
  CHECK(most_keys > trunk_blocks);
  // Whatever was retired is given back once nobody reads.
  by.raze();
  all.index.add("fixed", range(5'000'000, 1));
  CHECK(all.index.keys_of("fixed") == trunk_blocks + 1);
  CHECK(all.index.instances() == 2);
  CHECK(all.index.distinct_keys() == trunk_blocks + 1);
}

}  // namespace
}  // namespace infernex::indexer
