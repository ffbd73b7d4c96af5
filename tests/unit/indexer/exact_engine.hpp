#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/engine/block_key.hpp"
#include "actors/engine/kv_event.hpp"
#include "messages/registry.hpp"
#include "tests/unit/engine/kv_batches.hpp"

// An engine made for the purpose: prefix caches on three tiers whose content is known at every moment, as the prompts
// the blocks stand for, and the stream of batches it publishes. What an index must hold of it is worked out from the
// prompts with chain_keys; no mirror takes part.

namespace infernex::test {
class dice {
 public:
  explicit dice(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  bool percent(unsigned share) { return below(100) < share; }
  std::uint64_t word() { return random_(); }

 private:
  std::mt19937_64 random_;
};

struct engine_shape {
  std::string instance;
  std::string model = "m";
  std::uint32_t block_size = 2;
  /// Tokens a block of our keys.
  std::uint32_t canonical = 2;
  /// Blocks go only after all that follow them: no holes.
  bool orderly = true;
  bool lower_tiers = false;
  bool adapters = false;
  bool map_events = false;
  bool can_replay = true;
  /// Batches kept for replays.
  std::size_t kept = 10'000;
};

struct wire_event {
  std::uint64_t life = 0;
  std::uint64_t sequence = 0;
  std::vector<std::uint8_t> payload;
};

using membership = std::pair<fb::KvTier, engine::block_key>;

class scripted_engine {
 public:
  /// A prompt up to the end of a block.
  struct prefix {
    std::string adapter;
    std::vector<std::uint32_t> tokens;
    friend auto operator<=>(const prefix&, const prefix&) = default;
  };

  scripted_engine(engine_shape shape, dice& random) : shape_(std::move(shape)), random_(random) {}

  const engine_shape& shape() const { return shape_; }
  bool up() const { return up_; }
  std::uint64_t life() const { return life_; }
  std::uint64_t next_sequence() const { return next_; }
  /// The history that a replay can give begins with the engine.
  bool keeps_all() const { return shape_.can_replay && (kept_.empty() || kept_.front().sequence == 0); }
  const std::deque<wire_event>& kept() const { return kept_; }

  void kill() { up_ = false; }
  /// Again, or anew: an empty cache, other hashes, sequences from 0.
  void start() {
    up_ = true;
    ++life_;
    next_ = 0;
    kept_.clear();
    copies_.clear();
    hashes_.clear();
  }

  /// One more batch of one to three events; the caller sends it to whoever listens.
  const wire_event& publish() {
    events_.clear();
    const auto count = 1 + random_.below(3);
    for (std::size_t i = 0; i < count; ++i) act();
    msgpack_writer w;
    w.array(3).real(static_cast<double>(life_) * 1e6 + static_cast<double>(next_));
    w.array(static_cast<std::uint32_t>(events_.size()));
    for (const auto& each : events_) write(w, each);
    w.number(0);
    kept_.push_back({life_, next_++, w.bytes()});
    if (kept_.size() > shape_.kept) kept_.pop_front();
    return kept_.back();
  }

  /// What an index must hold of it.
  std::set<membership> truth() const {
    std::set<membership> all;
    for (const auto& [block, held] : copies_)
      for (std::size_t t = 0; t < engine::kv_tiers; ++t)
        if (held[t] > 0) add_completed(block, t, all);
    return all;
  }

  /// A long prompt of the kind this engine is asked, as the keys a router looks up.
  std::vector<engine::block_key> random_chain() {
    const auto prompt = random_prompt(most_blocks);
    return engine::chain_keys({shape_.model, prompt.adapter, "", shape_.canonical}, prompt.tokens,
                              prompt.tokens.size());
  }

 private:
  using copies = std::array<std::uint8_t, engine::kv_tiers>;

  static constexpr std::size_t most_blocks = 6;

  prefix random_prompt(std::size_t least = 1) {
    prefix prompt;
    if (shape_.adapters && random_.one_in(3)) prompt.adapter = random_.one_in(2) ? "ada" : "bob";
    const auto blocks = least + random_.below(most_blocks + 1 - least);
    // Few distinct blocks, so that prefixes are shared; tokens depend on the place so that chains do not repeat.
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto choice = static_cast<std::uint32_t>(random_.below(2));
      for (std::uint32_t t = 0; t < shape_.block_size; ++t) prompt.tokens.push_back(t == 0 ? 7 + choice : t);
    }
    return prompt;
  }
  prefix cut(const prefix& block, std::size_t blocks) const {
    return {block.adapter,
            {block.tokens.begin(), block.tokens.begin() + static_cast<std::ptrdiff_t>(blocks * shape_.block_size)}};
  }
  std::size_t blocks_of(const prefix& block) const { return block.tokens.size() / shape_.block_size; }
  std::uint64_t hash_of(const prefix& block) { return hashes_.emplace(block, random_.word()).first->second; }
  bool is_held(const prefix& block, std::size_t tier) const {
    const auto at = copies_.find(block);
    return at != copies_.end() && at->second[tier] > 0;
  }

  void act() {
    const auto choice = random_.below(100);
    if (choice < 2) {
      copies_.clear();
      events_.emplace_back(engine::all_cleared{});
    } else if (choice < 35 && !copies_.empty()) {
      evict();
    } else if (choice < 50 && shape_.lower_tiers && !copies_.empty()) {
      offload();
    } else {
      compute();
    }
  }

  /// Answers a prompt: what is cached is reused, the rest is stored after it. At times another request computes the
  /// same at the same time, and blocks are stored twice.
  void compute() {
    const auto prompt = random_prompt();
    const auto blocks = blocks_of(prompt);
    std::size_t cached = 0;
    while (cached < blocks && is_held(cut(prompt, cached + 1), 0)) ++cached;
    if (cached > 0 && random_.one_in(5)) cached = random_.below(cached);
    if (cached == blocks) --cached;
    engine::stored_blocks stored;
    stored.block_size = shape_.block_size;
    stored.adapter = prompt.adapter;
    if (cached > 0) stored.parent = hash_of(cut(prompt, cached));
    for (auto b = cached; b < blocks; ++b) {
      const auto block = cut(prompt, b + 1);
      stored.hashes.push_back(hash_of(block));
      ++copies_[block][0];
    }
    stored.tokens.assign(prompt.tokens.begin() + static_cast<std::ptrdiff_t>(cached * shape_.block_size),
                         prompt.tokens.end());
    events_.emplace_back(std::move(stored));
  }

  /// Blocks are copied to a lower tier, or back; the event repeats their hashes and not their tokens.
  void offload() {
    engine::stored_blocks copied;
    copied.block_size = shape_.block_size;
    const auto tier = random_.below(3);
    copied.tier = static_cast<fb::KvTier>(tier);
    const auto whole = any_block();
    for (std::size_t b = 1; b <= blocks_of(whole); ++b) {
      const auto block = cut(whole, b);
      const auto at = copies_.find(block);
      if (at == copies_.end()) continue;
      // Back to the device only in order.
      if (tier == 0 && shape_.orderly && b > 1 && !is_held(cut(whole, b - 1), 0)) break;
      ++at->second[tier];
      copied.hashes.push_back(hash_of(block));
    }
    if (!copied.hashes.empty()) events_.emplace_back(std::move(copied));
  }

  void evict() {
    const auto count = 1 + random_.below(4);
    for (std::size_t i = 0; i < count && !copies_.empty(); ++i) {
      auto block = any_block();
      auto tier = random_.below(3);
      while (!is_held(block, tier)) tier = (tier + 1) % 3;
      if (shape_.orderly) block = last_behind(block, tier);
      engine::removed_blocks removed;
      removed.tier = static_cast<fb::KvTier>(tier);
      removed.hashes.push_back(hash_of(block));
      auto& held = copies_[block];
      --held[tier];
      if (held == copies{}) copies_.erase(block);
      events_.emplace_back(std::move(removed));
    }
  }
  const prefix& any_block() {
    auto at = copies_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.below(copies_.size())));
    return at->first;
  }
  /// The end of a chain that goes through this block on the tier. Prompts that begin with it come right after it.
  prefix last_behind(const prefix& block, std::size_t tier) const {
    auto last = copies_.find(block);
    for (auto at = last; at != copies_.end(); ++at) {
      const auto& one = at->first;
      if (one.adapter != block.adapter || one.tokens.size() < block.tokens.size() ||
          !std::equal(block.tokens.begin(), block.tokens.end(), one.tokens.begin()))
        break;
      if (at->second[tier] > 0 && one.tokens.size() >= last->first.tokens.size()) last = at;
    }
    return last->first;
  }

  void add_completed(const prefix& block, std::size_t tier, std::set<membership>& to) const {
    const auto size = shape_.canonical;
    const auto keys = engine::chain_keys({shape_.model, block.adapter, "", size}, block.tokens, block.tokens.size());
    for (auto j = (block.tokens.size() - shape_.block_size) / size; j < keys.size(); ++j) {
      bool whole = true;
      for (auto b = j * size / shape_.block_size; b <= ((j + 1) * size - 1) / shape_.block_size; ++b)
        whole = whole && is_held(cut(block, b + 1), tier);
      if (whole) to.emplace(static_cast<fb::KvTier>(tier), keys[j]);
    }
  }

  void write(msgpack_writer& w, const engine::kv_event& event) const {
    static constexpr std::array<const char*, 3> media{"GPU", "CPU", "DISK"};
    const bool named = shape_.map_events;
    const auto field = [&](const char* name) {
      if (named) w.text(name);
    };
    if (const auto* stored = std::get_if<engine::stored_blocks>(&event)) {
      named ? w.map(7) : w.array(8);
      field("type");
      w.text("BlockStored");
      field("block_hashes");
      w.numbers(stored->hashes);
      field("parent_block_hash");
      stored->parent ? w.number(*stored->parent) : w.nil();
      field("token_ids");
      w.numbers({stored->tokens.begin(), stored->tokens.end()});
      field("block_size");
      w.number(stored->block_size);
      if (!named) w.nil();
      field("medium");
      w.text(media[static_cast<std::size_t>(stored->tier)]);
      field("lora_name");
      stored->adapter.empty() ? w.nil() : w.text(stored->adapter);
    } else if (const auto* removed = std::get_if<engine::removed_blocks>(&event)) {
      named ? w.map(3) : w.array(3);
      field("type");
      w.text("BlockRemoved");
      field("block_hashes");
      w.numbers(removed->hashes);
      field("medium");
      w.text(media[static_cast<std::size_t>(removed->tier)]);
    } else {
      named ? w.map(1) : w.array(1);
      field("type");
      w.text("AllBlocksCleared");
    }
  }

  engine_shape shape_;
  dice& random_;
  bool up_ = true;
  std::uint64_t life_ = 1;
  std::uint64_t next_ = 0;
  std::deque<wire_event> kept_;
  std::map<prefix, copies> copies_;
  std::map<prefix, std::uint64_t> hashes_;
  std::vector<engine::kv_event> events_;
};

}  // namespace infernex::test
