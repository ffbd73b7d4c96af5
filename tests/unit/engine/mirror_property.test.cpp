#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "actors/engine/mirror.hpp"

// The mirror against an engine made for the purpose: a prefix cache whose true content is known at every
// moment, block by block, as the whole prefix each block stands for.

namespace {

using namespace infernex::engine;

constexpr std::uint32_t block_size = 2;

using prefix = std::vector<std::uint32_t>;

block_key key_of(const prefix& tokens) {
  return chain_keys({"m", "", "", block_size}, tokens, tokens.size() / block_size).back();
}

/// Emits events as an engine would, in random order, and knows what they should lead to.
class random_engine {
 public:
  explicit random_engine(std::uint64_t seed) : random_(seed) {}

  kv_event next() {
    const auto choice = below(100);
    if (choice == 0) {
      copies_.clear();
      return all_cleared{};
    }
    if (choice < 40 && !copies_.empty()) return remove_one();
    return store_some();
  }

  /// What the mirror must hold now.
  std::set<block_key> truth() const {
    std::set<block_key> keys;
    for (const auto& [held, count] : copies_) keys.insert(key_of(held.first));
    return keys;
  }
  std::set<std::uint64_t> cached_hashes() const {
    std::set<std::uint64_t> hashes;
    for (const auto& [held, count] : copies_) hashes.insert(hashes_.at(held.first));
    return hashes;
  }
  /// The key of every block there ever was, by the engine's hash.
  std::map<std::uint64_t, block_key> every_key() const {
    std::map<std::uint64_t, block_key> keys;
    for (const auto& [tokens, hash] : hashes_) keys[hash] = key_of(tokens);
    return keys;
  }

 private:
  using held_block = std::pair<prefix, block_tier>;

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  bool is_cached(const prefix& tokens) const {
    return copies_.contains({tokens, block_tier::gpu}) || copies_.contains({tokens, block_tier::cpu});
  }

  std::uint64_t hash_of(const prefix& tokens) {
    const auto [at, fresh] = hashes_.emplace(tokens, random_());
    return at->second;
  }

  kv_event store_some() {
    // Few distinct tokens, so that prefixes are shared and blocks are stored again.
    prefix tokens;
    stored_blocks event;
    event.block_size = block_size;
    event.tier = below(4) == 0 ? block_tier::cpu : block_tier::gpu;
    const auto length = 1 + below(4);
    // An engine stores after a block that is cached.
    if (!copies_.empty() && below(3) != 0) {
      auto at = copies_.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(below(copies_.size())));
      tokens = at->first.first;
      event.parent = hash_of(tokens);
    }
    for (std::size_t i = 0; i < length; ++i) {
      for (std::uint32_t j = 0; j < block_size; ++j) {
        tokens.push_back(static_cast<std::uint32_t>(below(2)));
        event.tokens.push_back(tokens.back());
      }
      event.hashes.push_back(hash_of(tokens));
      ++copies_[{tokens, event.tier}];
    }
    return event;
  }

  kv_event remove_one() {
    auto at = copies_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(copies_.size())));
    removed_blocks event{{hash_of(at->first.first)}, at->first.second, std::nullopt};
    if (--at->second == 0) copies_.erase(at);
    return event;
  }

  std::mt19937_64 random_;
  std::map<held_block, std::uint32_t> copies_;
  std::map<prefix, std::uint64_t> hashes_;
};

std::set<block_key> content(const mirror& m) {
  const auto keys = m.all_keys();
  return {keys.begin(), keys.end()};
}

TEST_CASE("property: after every event the mirror holds exactly what the engine caches, and its differences add up") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    random_engine engine(seed);
    mirror m({"m", std::nullopt, 100'000, 1000});
    std::set<block_key> followed;
    std::uint64_t followed_digest = 0;
    for (int step = 0; step < 400; ++step) {
      m.apply(engine.next());
      if (step % 7 != 0) continue;
      const auto truth = engine.truth();
      REQUIRE(content(m) == truth);
      REQUIRE(m.keys() == truth.size());
      const auto change = m.take_difference();
      if (change.cleared) followed.clear();
      for (const auto key : change.removed) REQUIRE(followed.erase(key) == 1);
      for (const auto key : change.added) REQUIRE(followed.insert(key).second);
      REQUIRE(followed == truth);
      followed_digest = 0;
      for (const auto key : followed) followed_digest ^= key;
      REQUIRE(m.digest() == followed_digest);
    }
    CHECK(m.dropped()[drop_reason::unknown_block] == 0);
    CHECK(m.parked() == 0);
  }
}

TEST_CASE("property: a mirror that joins late never claims a block the engine does not cache") {
  for (std::uint64_t seed = 100; seed < 140; ++seed) {
    CAPTURE(seed);
    random_engine engine(seed);
    mirror m({"m", std::nullopt, 100'000, 64});
    for (int step = 0; step < 100; ++step) engine.next();  // lost
    std::size_t held = 0;
    for (int step = 0; step < 300; ++step) {
      m.apply(engine.next());
      const auto truth = engine.truth();
      for (const auto key : m.all_keys()) REQUIRE(truth.contains(key));
      held += m.keys();
    }
    CHECK(held > 0);
  }
}

TEST_CASE("property: the order in which stores arrive does not matter") {
  for (std::uint64_t seed = 200; seed < 220; ++seed) {
    CAPTURE(seed);
    random_engine engine(seed);
    std::vector<kv_event> stores;
    while (stores.size() < 60) {
      auto event = engine.next();
      if (std::holds_alternative<stored_blocks>(event)) stores.push_back(std::move(event));
    }
    const auto keys = engine.every_key();
    std::set<block_key> expected;
    for (const auto& event : stores)
      for (const auto hash : std::get<stored_blocks>(event).hashes) expected.insert(keys.at(hash));
    std::mt19937_64 random(seed);
    std::ranges::shuffle(stores, random);
    mirror m({"m", std::nullopt, 100'000, 10'000});
    for (const auto& event : stores) m.apply(event);
    CHECK(content(m) == expected);
    CHECK(m.parked() == 0);
  }
}

}  // namespace
