// Ten times more blocks than fit: the index keeps its limit after every single operation, the process its own within
// what README.md states, nothing that is held is forgotten or wrong, and evictions make room for new blocks.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "actors/indexer/source.hpp"
#include "tests/unit/indexer/agent_model.hpp"

namespace infernex::indexer {
namespace {

/// Resident memory of this process; 0: not to be had.
std::uint64_t resident_bytes() {
  auto* file = std::fopen("/proc/self/statm", "r");
  if (!file) return 0;
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const auto read = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  return read == 2 ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

block_key spread(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
  return x ^ (x >> 29);
}

constexpr std::uint64_t megabyte = 1 << 20;
constexpr std::size_t batch = 64;

/// An instance's blocks as it stored them, oldest first, and which of them the index took.
struct instance_model {
  std::string name;
  std::deque<block_key> stored;
  std::set<block_key> taken;
  std::uint64_t next = 0;
};

class overfull_index {
 public:
  overfull_index(std::uint64_t max_bytes, std::size_t instances)
      : index_({.max_instances = 64, .max_bytes = max_bytes}) {
    for (std::size_t i = 0; i < instances; ++i) {
      all_.push_back({"e" + std::to_string(i), {}, {}, i << 40});
      REQUIRE(index_.add_instance(all_.back().name));
    }
  }

  /// Half of what an instance stores others have as well, as prefixes are shared.
  void store(instance_model& to, std::size_t count) {
    std::vector<block_key> keys;
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = to.next++;
      keys.push_back(spread(number % 2 ? number : number & ((1ULL << 40) - 1)));
    }
    const auto before = index_.keys_of(to.name);
    const auto refused = index_.add(to.name, keys);
    sample();
    REQUIRE(index_.keys_of(to.name) == before + keys.size() - refused);
    kv_index::reader reader(index_);
    for (const auto key : keys) {
      to.stored.push_back(key);
      if (refused == 0 || (refused < keys.size() && holds(reader, to, key))) to.taken.insert(key);
    }
    refused_ += refused;
  }
  void evict(instance_model& from, std::size_t count) {
    std::vector<block_key> keys;
    for (; count > 0 && !from.stored.empty(); --count) {
      keys.push_back(from.stored.front());
      from.taken.erase(from.stored.front());
      from.stored.pop_front();
    }
    index_.remove(from.name, keys);
    sample();
  }
  void clear(instance_model& of) {
    index_.clear(of.name);
    sample();
    of.stored.clear();
    of.taken.clear();
  }
  /// Also between operations, as the owner's tick does.
  void maintain() {
    while (index_.maintain()) sample();
    sample();
  }

  void check() {
    kv_index::reader reader(index_);
    for (const auto& one : all_) {
      REQUIRE(index_.keys_of(one.name) == one.taken.size());
      std::uint64_t digest = 0;
      for (const auto key : one.taken) digest ^= key;
      REQUIRE(index_.digest_of(one.name) == digest);
      std::size_t at = 0;
      for (const auto key : one.taken)
        if (at++ % 97 == 0) REQUIRE(holds(reader, one, key));
    }
  }

  std::vector<instance_model>& instances() { return all_; }
  kv_index& index() { return index_; }
  std::uint64_t refused() const { return refused_; }
  /// Blocks that the instances hold, whether the index took them or not.
  std::uint64_t stored() const {
    std::uint64_t sum = 0;
    for (const auto& one : all_) sum += one.stored.size();
    return sum;
  }
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  static bool holds(kv_index::reader& reader, const instance_model& of, block_key key) {
    return std::ranges::any_of(reader.lookup({&key, 1}), [&of](const match& m) { return m.instance == of.name; });
  }
  void sample() {
    most_bytes_ = std::max(most_bytes_, index_.bytes());
    REQUIRE(index_.bytes() <= index_.max_bytes());
  }

  kv_index index_;
  std::vector<instance_model> all_;
  std::uint64_t refused_ = 0;
  std::uint64_t most_bytes_ = 0;
};

TEST_CASE("ten times more blocks than fit, with churn: the limit holds, what is held is true, evictions make room") {
  overfull_index full(4 * megabyte, 8);
  // How many blocks fit, by filling one index to the brim.
  std::uint64_t fits = 0;
  {
    kv_index alone({.max_instances = 64, .max_bytes = 4 * megabyte});
    alone.add_instance("e");
    for (std::uint64_t i = 0; alone.refused() == 0; ++i) {
      const auto key = spread(i);
      alone.add("e", {&key, 1});
    }
    fits = alone.distinct_keys();
  }
  REQUIRE(fits > 10'000);
  std::mt19937 random(3);
  for (std::uint64_t turn = 0; full.stored() < 10 * fits; ++turn) {
    auto& one = full.instances()[random() % full.instances().size()];
    full.store(one, batch);
    // Engines evict, too, but less than they store.
    if (random() % 8 == 0) full.evict(one, batch);
    if (random() % 4'000 == 0) full.clear(one);
    if (random() % 64 == 0) full.maintain();
    if (turn % 4'096 == 0) full.check();
  }
  full.check();
  CHECK(full.refused() > fits);
  CHECK(full.index().refused() == full.refused());
  CHECK(full.most_bytes() > 2 * megabyte);

  // Everybody evicts half, and new blocks are taken again.
  for (auto& one : full.instances()) {
    full.evict(one, one.stored.size() / 2);
    full.maintain();
  }
  CHECK(full.index().has_room());
  auto& first = full.instances()[0];
  const auto before = full.index().refused();
  full.store(first, batch);
  CHECK(full.index().refused() == before);
  full.check();
}

// AddressSanitizer and ThreadSanitizer keep freed memory and shadows of it, so what is resident is theirs: the release
// stage runs this one (index_memory).
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("resident memory stays within max_bytes and the overhead that README.md states") {
  constexpr auto limit = 64 * megabyte;
  const auto before = resident_bytes();
  REQUIRE(before > 0);
  kv_index index({.max_instances = 64, .max_bytes = limit});
  std::uint64_t most_bytes = 0;
  std::uint64_t most_resident = 0;
  std::mt19937_64 random(5);
  std::array<std::uint64_t, 8> newest{};
  std::array<std::uint64_t, 8> oldest{};
  for (int i = 0; i < 8; ++i) index.add_instance("e" + std::to_string(i));
  std::vector<block_key> keys(256);
  const auto key_of = [](std::size_t who, std::uint64_t number) { return spread((std::uint64_t{who} << 40) + number); };
  for (int turn = 0; turn < 160'000; ++turn) {
    const auto who = static_cast<std::size_t>(random() % 8);
    const auto name = "e" + std::to_string(who);
    for (auto& key : keys) key = key_of(who, newest[who]++);
    index.add(name, keys);
    // A window of the newest blocks, several times larger than what fits.
    if (newest[who] - oldest[who] > 2'000'000) {
      for (auto& key : keys) key = key_of(who, oldest[who]++);
      index.remove(name, keys);
    }
    if (random() % 20'000 == 0) {
      index.clear(name);
      oldest[who] = newest[who];
    }
    REQUIRE(index.bytes() <= limit);
    most_bytes = std::max(most_bytes, index.bytes());
    if (turn % 64 == 0) most_resident = std::max(most_resident, resident_bytes());
  }
  CHECK(index.refused() > 10 * index.distinct_keys());
  MESSAGE("limit ", limit / megabyte, " MB, counted ", most_bytes / megabyte, " MB, resident ",
          (most_resident - std::min(most_resident, before)) / megabyte, " MB more than before");
  CHECK(most_resident <= before + limit + limit / 4 + 32 * megabyte);
}
#endif

TEST_CASE("a source at the limit says capped, follows evictions, and is whole again when there is room") {
  using namespace std::chrono_literals;
  kv_index index({.max_instances = 8, .max_bytes = megabyte});
  index.add_instance("e");
  index.add_instance("other");
  sync_settings settings;
  sync_counters counters;
  time_point now{std::chrono::hours(1)};
  source of(index, "e", settings, counters, now);
  agent_model agent;
  agent.engine_epoch = 5;
  std::uint64_t next = 0;
  std::vector<block_key> keys(1'000);
  of.on_announce(agent.announce(), now);
  while (of.state(now) != sync_state::capped) {
    REQUIRE(of.state(now) == sync_state::exact);
    for (auto& key : keys) key = spread(next++);
    of.on_delta(agent.change({}, keys).get(), now);
    REQUIRE(index.bytes() <= megabyte);
    REQUIRE(next < 1'000'000);
  }
  const auto held = index.keys_of("e");
  CHECK(held < agent.mirror.size());
  CHECK_FALSE(of.exact(now));
  CHECK_FALSE(of.take_request(now));  // a snapshot would not fit either
  // The engine evicts a third of what it has.
  std::vector<block_key> gone;
  for (std::uint64_t i = 0; i < next / 3; ++i) gone.push_back(spread(i));
  of.on_delta(agent.change(gone, {}).get(), now);
  CHECK(of.state(now) == sync_state::capped);
  kv_index::reader reader(index);
  CHECK(reader.lookup({gone.data(), 1}).empty());
  // At most a few snapshots: where one comes before the last one's traces are swept, some blocks may not fit yet.
  unsigned snapshots = 0;
  for (int tick = 0; tick < 100 && of.state(now) != sync_state::exact; ++tick) {
    while (index.maintain()) continue;
    now += 2s;
    of.on_announce(agent.announce(), now);
    of.on_tick(now);
    if (!of.take_request(now)) continue;
    CHECK(of.request_reason() == "room again");
    for (const auto& part : agent.snapshot(700)) of.on_chunk(part.get(), now);
    REQUIRE(index.bytes() <= megabyte);
    ++snapshots;
  }
  CHECK(snapshots == 1);
  CHECK(of.state(now) == sync_state::exact);
  CHECK(index.keys_of("e") == agent.mirror.size());
  CHECK(index.digest_of("e") == agent.digest());
}

}  // namespace
}  // namespace infernex::indexer
