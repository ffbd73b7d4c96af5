#include "actors/indexer/kv_index.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "actors/indexer/index_set.hpp"

namespace infernex::indexer {
namespace {

using found_map = std::map<std::string, std::uint32_t>;

found_map as_map(std::span<const match> found) {
  found_map all;
  for (const auto& m : found) all.emplace(m.instance, m.blocks);
  return all;
}

/// The plainest possible index.
struct model_index {
  std::map<std::string, std::set<block_key>> held;

  found_map lookup(const std::vector<block_key>& chain) const {
    found_map all;
    for (const auto& [instance, keys] : held) {
      std::uint32_t blocks = 0;
      while (blocks < chain.size() && keys.contains(chain[blocks])) ++blocks;
      if (blocks != 0) all[instance] = blocks;
    }
    return all;
  }
  std::size_t distinct() const {
    std::set<block_key> all;
    for (const auto& [instance, keys] : held) all.insert(keys.begin(), keys.end());
    return all.size();
  }
};

std::uint64_t digest(const std::set<block_key>& keys) {
  std::uint64_t x = 0;
  for (const auto k : keys) x ^= k;
  return x;
}

std::vector<block_key> range(block_key from, std::size_t count) {
  std::vector<block_key> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = from + i;
  return keys;
}

void drain(kv_index& index) {
  for (int i = 0; i < 10'000 && index.maintain(); ++i) {
  }
}

TEST_CASE("a lookup counts leading blocks and stops at the first hole") {
  kv_index index;
  REQUIRE(index.add_instance("a"));
  REQUIRE(index.add_instance("b"));
  REQUIRE(index.add_instance("c"));
  const auto chain = range(100, 6);
  index.add("a", chain);
  index.set_closed("b", false);
  index.set_closed("c", false);
  index.add("b", std::vector<block_key>{100, 101, 103, 104});  // a hole at 102
  index.add("c", std::vector<block_key>{101, 102});            // not the first block
  kv_index::reader reader(index);
  CHECK(as_map(reader.lookup(chain)) == found_map{{"a", 6}, {"b", 2}});
  CHECK(as_map(reader.lookup(std::vector<block_key>{101, 102, 103})) == found_map{{"a", 3}, {"b", 1}, {"c", 2}});
  CHECK(reader.lookup({}).empty());
  CHECK(reader.lookup(std::vector<block_key>{7}).empty());
}

TEST_CASE("adding and removing twice counts once; key 0 is a key like any other") {
  kv_index index;
  index.add_instance("a");
  const std::vector<block_key> keys{0, 5, 0, 9};
  CHECK(index.add("a", keys) == 0);
  CHECK(index.keys_of("a") == 3);
  CHECK(index.digest_of("a") == (5 ^ 9));
  kv_index::reader reader(index);
  CHECK(as_map(reader.lookup(std::vector<block_key>{0, 9, 5})) == found_map{{"a", 3}});
  index.remove("a", std::vector<block_key>{0, 0, 77});
  CHECK(index.keys_of("a") == 2);
  CHECK(reader.lookup(std::vector<block_key>{0}).empty());
}

TEST_CASE("an instance that is not there holds nothing and takes nothing") {
  kv_index index;
  CHECK(index.add("nobody", range(1, 4)) == 4);
  index.remove("nobody", range(1, 4));
  index.clear("nobody");
  index.remove_instance("nobody");
  CHECK(index.keys_of("nobody") == 0);
  CHECK(index.distinct_keys() == 0);
}

TEST_CASE("the number of instances is bounded, and a place is free again after a removal") {
  kv_index index({.max_instances = 3, .max_bytes = 1 << 20});
  CHECK(index.add_instance("a"));
  CHECK(index.add_instance("b"));
  CHECK(index.add_instance("c"));
  CHECK(index.add_instance("a"));
  CHECK_FALSE(index.add_instance("d"));
  index.remove_instance("b");
  CHECK(index.add_instance("d"));
}

TEST_CASE("a cleared or replaced instance shows nothing of its former blocks, also when slots run out") {
  kv_index index({.max_instances = 3840, .max_bytes = 64 << 20});
  const auto keys = range(1, 200);
  kv_index::reader reader(index);
  // Each round leaves a slot behind: 5,000 rounds go well beyond the 4,096 slots there are.
  for (int round = 0; round < 5'000; ++round) {
    const auto name = "engine-" + std::to_string(round % 7);
    index.add_instance(name);
    if (round % 3 == 0) index.add(name, std::span(keys).first(1 + static_cast<std::size_t>(round) % 200));
    index.clear(name);
    REQUIRE(reader.lookup(keys).empty());
    if (round % 5 == 0) index.remove_instance(name);
  }
  drain(index);
  CHECK(index.distinct_keys() == 0);
}

TEST_CASE("many holders of one key: growing through every form of the holder set and back") {
  kv_index index;
  const auto chain = range(1'000, 3);
  kv_index::reader reader(index);
  found_map expected;
  for (int i = 0; i < 300; ++i) {
    const auto name = "engine-" + std::to_string(i);
    index.add_instance(name);
    index.add(name, chain);
    expected[name] = 3;
    if (i % 37 == 0) REQUIRE(as_map(reader.lookup(chain)) == expected);
  }
  CHECK(as_map(reader.lookup(chain)) == expected);
  for (int i = 0; i < 297; ++i) {
    const auto name = "engine-" + std::to_string(i);
    index.remove(name, std::vector<block_key>{1'001});
    expected[name] = 1;
  }
  CHECK(as_map(reader.lookup(chain)) == expected);
  CHECK(index.distinct_keys() == 3);
}

TEST_CASE("random operations agree with the plain index") {
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    std::mt19937 random(seed);
    kv_index index;
    model_index model;
    kv_index::reader reader(index);
    const auto pick = [&random](unsigned n) { return random() % n; };
    const unsigned names = seed % 2 ? 12 : 150;  // few: inline holders; many: bitsets
    for (int step = 0; step < 4'000; ++step) {
      const auto name = "e" + std::to_string(pick(names));
      const auto keys = range(pick(600), 1 + pick(40));
      switch (pick(20)) {
        case 0:
          index.clear(name);
          if (model.held.contains(name)) model.held[name].clear();
          break;
        case 1:
          index.remove_instance(name);
          model.held.erase(name);
          break;
        case 2:
        case 3:
        case 4:
        case 5:
        case 6:
          index.remove(name, keys);
          if (model.held.contains(name))
            for (const auto k : keys) model.held[name].erase(k);
          break;
        case 7:
          index.maintain();
          break;
        default:
          REQUIRE(index.add_instance(name));
          index.set_closed(name, false);
          REQUIRE(index.add(name, keys) == 0);
          model.held[name].insert(keys.begin(), keys.end());
      }
      const auto chain = range(pick(600), 1 + pick(30));
      REQUIRE(as_map(reader.lookup(chain)) == model.lookup(chain));
      REQUIRE(as_map(reader.walk(chain)) == model.lookup(chain));
      if (model.held.contains(name)) {
        REQUIRE(index.keys_of(name) == model.held[name].size());
        REQUIRE(index.digest_of(name) == digest(model.held[name]));
      }
    }
    drain(index);
    CHECK(index.distinct_keys() == model.distinct());
    CHECK(index.instances() == model.held.size());
  }
}

TEST_CASE("galloping gives what walking gives, on trees of conversations, with and without instances that have holes") {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    std::mt19937 random(seed);
    const auto pick = [&random](std::size_t n) { return random() % n; };
    const std::size_t names = seed % 2 ? 6 : 130;  // few: inline holders; many: bitsets
    // Chains that share their beginnings: each continues an earlier one from some block on.
    std::vector<std::vector<block_key>> chains{range(1, 1)};
    block_key fresh = 1'000;
    for (int i = 0; i < 120; ++i) {
      const auto& from = chains[pick(chains.size())];
      std::vector<block_key> chain(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(1 + pick(from.size())));
      for (auto more = pick(300); more > 0; --more) chain.push_back(++fresh);
      chains.push_back(std::move(chain));
    }
    kv_index index;
    model_index model;
    kv_index::reader reader(index);
    const auto name_of = [](std::size_t i) { return "e" + std::to_string(i); };
    for (std::size_t i = 0; i < names; ++i) {
      REQUIRE(index.add_instance(name_of(i)));
      if (seed > 4 && i % 5 == 0) index.set_closed(name_of(i), false);
    }
    for (int step = 0; step < 1'500; ++step) {
      const auto i = pick(names);
      const auto name = name_of(i);
      const auto& chain = chains[pick(chains.size())];
      const auto upto = std::span(chain).first(1 + pick(chain.size()));
      auto& held = model.held[name];
      if (seed > 4 && i % 5 == 0) {  // may have holes
        const auto some = upto.subspan(pick(upto.size()));
        index.add(name, some);
        held.insert(some.begin(), some.end());
      } else if (pick(3) != 0) {
        index.add(name, upto);
        held.insert(upto.begin(), upto.end());
      } else {
        // Whatever follows a block goes before it.
        std::vector<block_key> gone;
        for (const auto& other : chains) {
          const auto at = std::find(other.begin(), other.end(), upto.back());
          for (auto k = other.end(); at != other.end() && k != at;)
            if (held.erase(*--k) != 0) gone.push_back(*k);
        }
        index.remove(name, gone);
      }
      const auto& asked = chains[pick(chains.size())];
      REQUIRE(as_map(reader.lookup(asked)) == model.lookup(asked));
      REQUIRE(as_map(reader.walk(asked)) == model.lookup(asked));
    }
  }
}

TEST_CASE("blocks on several tiers: how far each tier reaches, with those nearer") {
  kv_index index;
  index.add_instance("a");
  index.add_instance("b");
  const auto chain = range(50, 8);
  const auto blocks = std::span<const block_key>(chain);
  index.add("a", blocks.first(2));                   // device: 0 1
  index.add("a", blocks.subspan(1, 3), tier::Host);  // host: 1 2 3
  index.add("a", blocks.subspan(4, 2), tier::Disk);  // disk: 4 5
  index.add("a", blocks.subspan(6, 1));              // device: 6
  index.add("b", blocks.first(5));
  kv_index::reader reader(index);
  const auto found = reader.lookup(chain);
  REQUIRE(found.size() == 2);
  CHECK(found[0].instance == "a");
  CHECK(found[0].device_blocks == 2);
  CHECK(found[0].host_blocks == 4);
  CHECK(found[0].blocks == 7);
  CHECK(found[1].device_blocks == 5);
  CHECK(found[1].blocks == 5);
  CHECK(index.keys_of("a") == 8);
  CHECK(index.keys_of("a", tier::Host) == 3);
  CHECK(index.digest_of("a") != digest({50, 51, 52, 53, 54, 55, 56}));

  SUBCASE("a tier alone is a match too") {
    index.remove("a", blocks.first(7));
    index.add("a", blocks.first(1), tier::Disk);
    const auto left = reader.lookup(chain);
    REQUIRE(left.size() == 2);
    CHECK(left[0].blocks == 6);
    CHECK(left[0].host_blocks == 0);
    CHECK(left[0].device_blocks == 0);
  }
  SUBCASE("clearing forgets all tiers") {
    index.clear("a");
    CHECK(index.keys_of("a") == 0);
    CHECK(index.digest_of("a") == 0);
    CHECK(as_map(reader.lookup(chain)) == found_map{{"b", 5}});
    index.add("a", blocks.first(1), tier::Host);
    CHECK(as_map(reader.lookup(chain)) == found_map{{"a", 1}, {"b", 5}});
  }
  SUBCASE("every block can be listed, once") {
    std::vector<block_key> listed;
    for (std::uint32_t part = 0; part < kv_index::key_parts; ++part)
      reader.each_key("a", part, [&](block_key k) { listed.push_back(k); });
    std::sort(listed.begin(), listed.end());
    CHECK(listed == range(50, 7));
  }
}

TEST_CASE("a prompt of a million tokens at 16 tokens a block") {
  kv_index index;
  index.add_instance("a");
  index.add_instance("b");
  const auto chain = range(1, 62'500);
  index.add("a", chain);
  index.add("b", std::span(chain).first(33'333));
  kv_index::reader reader(index);
  CHECK(as_map(reader.lookup(chain)) == found_map{{"a", 62'500}, {"b", 33'333}});
  CHECK(as_map(reader.walk(chain)) == found_map{{"a", 62'500}, {"b", 33'333}});
}

TEST_CASE("the byte limit refuses keys, counts them, and keeps what is there") {
  kv_index index({.max_instances = 8, .max_bytes = 200'000});
  index.add_instance("a");
  std::size_t refused = 0;
  for (block_key k = 0; k < 100; ++k) refused += index.add("a", range(1 + k * 1'000, 1'000));
  CHECK(refused > 0);
  CHECK(index.refused() == refused);
  CHECK(index.keys_of("a") + refused == 100'000);
  CHECK(index.bytes() <= 200'000);
  CHECK(index.add("a", range(1, 100)) == 0);  // held already
  kv_index::reader reader(index);
  CHECK(as_map(reader.lookup(range(1, 100))) == found_map{{"a", 100}});

  SUBCASE("what is removed makes room") {
    index.clear("a");
    drain(index);
    CHECK(index.distinct_keys() == 0);
    CHECK(index.bytes() < 50'000);
    CHECK(index.add("a", range(500'000, 1'000)) == 0);
  }
  SUBCASE("also without a sweep in between") {
    const auto before = index.keys_of("a");
    for (block_key k = 0; k < 100; ++k) index.remove("a", range(1 + k * 1'000, 1'000));
    CHECK(index.keys_of("a") == 0);
    refused = 0;
    for (block_key k = 0; k < 100; ++k) refused += index.add("a", range(900'000 + k * 1'000, 1'000));
    CHECK(index.keys_of("a") + refused == 100'000);
    CHECK(index.keys_of("a") > before / 2);
    CHECK(index.bytes() <= 200'000);
  }
}

TEST_CASE("an index counts all it allocates, and gives it back") {
  auto shared = std::make_shared<byte_budget>(1 << 20);
  {
    kv_index first({}, shared);
    kv_index second({}, shared);
    first.add_instance("a");
    second.add_instance("a");
    first.add("a", range(1, 10'000));
    CHECK(first.bytes() > 10'000 * 16);
    CHECK(shared->used() == first.bytes() + second.bytes());
    std::size_t refused = 0;
    for (block_key k = 1; k < 20; ++k) refused += second.add("a", range(k * 50'000, 10'000));
    CHECK(refused > 0);
    CHECK(shared->used() <= 1 << 20);
  }
  CHECK(shared->used() == 0);
}

TEST_CASE("an index set finds models, bounds their number, and drops them under a reader") {
  index_set set({.max_models = 2, .max_bytes = 1 << 20, .per_model = {}});
  auto first = set.obtain("m1");
  REQUIRE(first);
  REQUIRE(set.obtain("m2"));
  CHECK_FALSE(set.obtain("m3"));
  CHECK(set.obtain("m1") == first);
  first->add_instance("a");
  first->add("a", range(1, 5));
  index_set::reader reader(set);
  const auto chain = range(1, 9);
  CHECK_FALSE(reader.lookup("m3", chain));
  REQUIRE(reader.lookup("m1", chain));
  CHECK(as_map(*reader.lookup("m1", chain)) == found_map{{"a", 5}});
  CHECK(set.find("m1") == first);
  set.drop("m1");
  first.reset();
  CHECK_FALSE(set.find("m1"));
  CHECK_FALSE(reader.lookup("m1", chain));
  REQUIRE(set.obtain("m3"));
  CHECK(reader.lookup("m3", chain)->empty());
}

}  // namespace
}  // namespace infernex::indexer
