#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "actors/engine/kv_event.hpp"

namespace infernex::engine {

/// Blocks an engine stored while it was probed, put together to chains by their parents, to find one prompt among
/// them: an engine may serve others meanwhile, and may have cached how a prompt begins. Bounded; full, it forgets the
/// oldest chain.
class parity_chains {
 public:
  /// Blocks with tokens, of groups that hold every token; others are not looked at.
  void add(const stored_blocks& blocks);
  void clear();
  bool empty() const { return chains_.empty(); }
  /// Of the first blocks seen, ever.
  std::optional<std::uint32_t> block_size() const { return block_size_; }

  /// Whether every full block of this prompt that was not cached before has been stored.
  bool holds(std::span<const std::uint32_t> prompt) const;

  /// Of the chains that end where a prompt of `counted` tokens would, the one most like `prompt`: the first position
  /// where they differ, and what the engine has there (nothing: its prompt ends there).
  struct difference {
    std::size_t position = 0;
    std::optional<std::uint32_t> engine_token;
  };
  std::optional<difference> nearest(std::span<const std::uint32_t> prompt, std::size_t counted) const;

 private:
  struct chain {
    bool starts_prompt = false;
    std::uint64_t last = 0;
    std::uint32_t block_size = 0;
    std::vector<std::uint32_t> tokens;
  };
  static bool ends(const chain& blocks, std::span<const std::uint32_t> prompt);

  std::deque<chain> chains_;
  std::size_t tokens_ = 0;
  std::optional<std::uint32_t> block_size_;
};

}  // namespace infernex::engine
