#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/engine/mirror.hpp"
#include "messages/kv_digest.hpp"

// An engine made for the purpose: a prefix cache whose true content is known at every moment, block by block, as the
// whole prefix each block stands for. What a mirror of it must hold is worked out from the definition, slowly.

namespace infernex::test {

using namespace infernex::engine;

/// A block, as everything it depends on: the tokens from the start of the prompt and each engine block's extra.
struct prefix {
  std::vector<std::uint32_t> tokens;
  std::vector<std::string> extras;
  friend auto operator<=>(const prefix&, const prefix&) = default;
};

using membership = std::pair<fb::KvTier, block_key>;

struct engine_shape {
  std::uint32_t block_size = 2;
  std::uint32_t canonical_size = 2;
  bool groups = false;
  /// Events that repeat known blocks without their tokens, as offloading does.
  bool tokenless = true;
  /// No block goes without all that follow it, whatever their order: holes are rare and short.
  bool orderly = false;
};

class random_engine {
 public:
  random_engine(std::uint64_t seed, engine_shape shape) : random_(seed), shape_(shape) {}

  kv_event next() {
    const auto choice = below(200);
    if (choice == 0) {
      copies_.clear();
      return all_cleared{};
    }
    if (choice < 80 && !copies_.empty()) return remove_some();
    if (choice < 110 && shape_.tokenless && !copies_.empty()) return repeat_some();
    return store_some();
  }

  kv_event store_some() {
    prefix block;
    stored_blocks event;
    event.block_size = shape_.block_size;
    event.tier = tier();
    event.group = group();
    const auto length = 1 + below(4);
    // An engine stores after a block that is cached.
    if (!copies_.empty() && below(3) != 0) {
      block = any_block();
      event.parent = hash_of(block);
    }
    for (std::size_t i = 0; i < length; ++i) {
      // Few distinct blocks, so that prefixes are shared, blocks stored again, and canonical blocks equal where the
      // engine's blocks are not.
      const auto odd = below(3) == 0 ? below(shape_.block_size) : shape_.block_size;
      for (std::uint32_t j = 0; j < shape_.block_size; ++j) block.tokens.push_back(j == odd ? 1 : 0);
      event.tokens.insert(event.tokens.end(), block.tokens.end() - shape_.block_size, block.tokens.end());
      block.extras.push_back(below(10) == 0 ? (below(2) == 0 ? "image" : "other") : "");
      event.extras.push_back(block.extras.back());
      event.hashes.push_back(hash_of(block));
      ++copies_[{block, event.tier, event.group.value_or(0)}];
    }
    return event;
  }

  /// What the mirror must hold now.
  std::set<membership> truth() {
    std::set<membership> result;
    for (const auto& [copy, count] : copies_)
      for (const auto key : keys_completed_by(copy.block))
        if (overlap_is_held(copy.block, key.first, copy.tier)) result.emplace(copy.tier, key.second);
    return result;
  }
  /// Of every key there ever was the one before it in its chain; 0 for the first of a prompt.
  const std::map<block_key, block_key>& parents() const { return parents_; }

 private:
  struct copy {
    prefix block;
    fb::KvTier tier = fb::KvTier::Device;
    std::uint32_t group = 0;
    friend auto operator<=>(const copy&, const copy&) = default;
  };

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  std::uint64_t hash_of(const prefix& block) { return hashes_.emplace(block, random_()).first->second; }

  std::optional<std::uint32_t> group() {
    return shape_.groups ? std::optional(static_cast<std::uint32_t>(below(2))) : std::nullopt;
  }
  fb::KvTier tier() { return below(4) == 0 ? static_cast<fb::KvTier>(1 + below(2)) : fb::KvTier::Device; }

  bool is_held(const prefix& block, fb::KvTier tier) const {
    const auto at = copies_.lower_bound({block, tier, 0});
    return at != copies_.end() && at->first.block == block && at->first.tier == tier;
  }
  const prefix& any_block() {
    auto at = copies_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(copies_.size())));
    return at->first.block;
  }

  /// Number and key of each canonical block whose last token lies in the last engine block of this prefix.
  std::vector<std::pair<std::size_t, block_key>> keys_completed_by(const prefix& block) {
    const auto& sizes = shape_;
    const auto blocks = block.tokens.size() / sizes.canonical_size;
    const auto before = (block.tokens.size() - sizes.block_size) / sizes.canonical_size;
    block_key key = root_key({"m", "", "", sizes.canonical_size});
    block_key parent = 0;
    std::vector<std::pair<std::size_t, block_key>> result;
    for (std::size_t j = 0; j < blocks; ++j) {
      auto seed = key;
      std::set<std::string> seen;
      for (auto i = first_overlapping(j); i <= last_overlapping(j); ++i)
        if (seen.insert(block.extras[i]).second) seed = with_extra(seed, block.extras[i]);
      key = next_key(seed, std::span(block.tokens).subspan(j * sizes.canonical_size, sizes.canonical_size));
      parents_[key] = parent;
      parent = key;
      if (j >= before) result.emplace_back(j, key);
    }
    return result;
  }
  std::size_t first_overlapping(std::size_t j) const { return j * shape_.canonical_size / shape_.block_size; }
  std::size_t last_overlapping(std::size_t j) const {
    return ((j + 1) * shape_.canonical_size - 1) / shape_.block_size;
  }
  bool overlap_is_held(const prefix& block, std::size_t j, fb::KvTier tier) const {
    for (auto i = first_overlapping(j); i <= last_overlapping(j); ++i)
      if (!is_held(cut(block, i + 1), tier)) return false;
    return true;
  }
  prefix cut(const prefix& block, std::size_t blocks) const {
    return {{block.tokens.begin(), block.tokens.begin() + static_cast<std::ptrdiff_t>(blocks * shape_.block_size)},
            {block.extras.begin(), block.extras.begin() + static_cast<std::ptrdiff_t>(blocks)}};
  }

  kv_event repeat_some() {
    stored_blocks event;
    event.tier = tier();
    event.group = group();
    for (std::size_t i = 0, count = 1 + below(3); i < count; ++i) {
      const auto block = any_block();
      event.hashes.push_back(hash_of(block));
      ++copies_[{block, event.tier, event.group.value_or(0)}];
    }
    return event;
  }

  /// One copy, or a block and all there is behind it, or all before it: so holes come and go.
  kv_event remove_some() {
    auto at = copies_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(copies_.size())));
    const auto chosen = at->first;
    removed_blocks event;
    event.tier = chosen.tier;
    if (shape_.groups) event.group = chosen.group;
    const auto how = shape_.orderly ? 1 : below(3);
    std::vector<prefix> blocks{chosen.block};
    if (how > 0)
      for (const auto& [each, count] : copies_)
        if (each.tier == chosen.tier && each.group == chosen.group && each.block != chosen.block &&
            (how == 1 ? begins_with(each.block, chosen.block) : begins_with(chosen.block, each.block)))
          blocks.push_back(each.block);
    std::ranges::shuffle(blocks, random_);
    for (const auto& block : blocks) {
      event.hashes.push_back(hash_of(block));
      const auto held = copies_.find({block, chosen.tier, chosen.group});
      if (--held->second == 0) copies_.erase(held);
    }
    return event;
  }
  static bool begins_with(const prefix& whole, const prefix& start) {
    return whole.tokens.size() > start.tokens.size() &&
           std::equal(start.tokens.begin(), start.tokens.end(), whole.tokens.begin()) &&
           std::equal(start.extras.begin(), start.extras.end(), whole.extras.begin());
  }

  std::mt19937_64 random_;
  engine_shape shape_;
  std::map<copy, std::uint32_t> copies_;
  std::map<prefix, std::uint64_t> hashes_;
  std::map<block_key, block_key> parents_;
};

inline std::uint64_t digest_of_all(const std::set<membership>& all) {
  std::uint64_t digest = 0;
  for (const auto& [tier, key] : all) digest ^= digest_of(key, tier);
  return digest;
}

/// No block on the device without the one before it.
inline bool is_closed(const std::set<membership>& all, const std::map<block_key, block_key>& parents) {
  return std::ranges::all_of(all, [&](const membership& one) {
    if (one.first != fb::KvTier::Device) return true;
    const auto parent = parents.at(one.second);
    return parent == 0 || all.contains({one.first, parent});
  });
}

}  // namespace infernex::test
