#include "actors/engine/parity_chains.hpp"

#include <algorithm>

namespace infernex::engine {

namespace {

constexpr std::size_t max_tokens = 1 << 20;
constexpr std::size_t max_chains = 4'096;

/// Tokens of the full blocks of so many.
std::size_t in_full_blocks(std::size_t tokens, std::uint32_t block_size) { return tokens / block_size * block_size; }

/// How many tokens of `a` and `b` are equal from the start.
std::size_t common(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

void parity_chains::add(const stored_blocks& blocks) {
  if (blocks.hashes.empty() || blocks.tokens.empty() || blocks.block_size == 0) return;
  if (!holds_every_token(blocks.attention_kind) || blocks.tokens.size() > max_tokens) return;
  if (!block_size_) block_size_ = blocks.block_size;
  for (tokens_ += blocks.tokens.size(); tokens_ > max_tokens || chains_.size() >= max_chains; chains_.pop_front())
    tokens_ -= chains_.front().tokens.size();
  const auto before =
      std::ranges::find_if(chains_, [&](const chain& c) { return blocks.parent && c.last == *blocks.parent; });
  if (before == chains_.end()) {
    chains_.push_back({!blocks.parent, blocks.hashes.back(), blocks.block_size, blocks.tokens});
    return;
  }
  before->last = blocks.hashes.back();
  before->tokens.insert(before->tokens.end(), blocks.tokens.begin(), blocks.tokens.end());
}

void parity_chains::clear() {
  chains_.clear();
  tokens_ = 0;
}

/// Whether the chain is the prompt from some block on to its last full one.
bool parity_chains::ends(const chain& blocks, std::span<const std::uint32_t> prompt) {
  const auto full = in_full_blocks(prompt.size(), blocks.block_size);
  for (std::size_t from = blocks.starts_prompt ? 0 : blocks.block_size; from < full; from += blocks.block_size) {
    const auto rest = prompt.subspan(from);
    const auto equal = common(blocks.tokens, rest);
    if (from + equal >= full && equal == std::min(blocks.tokens.size(), rest.size())) return true;
    if (blocks.starts_prompt) break;
  }
  return false;
}

bool parity_chains::holds(std::span<const std::uint32_t> prompt) const {
  return std::ranges::any_of(chains_, [&](const chain& c) { return ends(c, prompt); });
}

std::optional<parity_chains::difference> parity_chains::nearest(std::span<const std::uint32_t> prompt,
                                                                std::size_t counted) const {
  std::optional<difference> best;
  for (const auto& c : chains_) {
    const auto full = in_full_blocks(counted, c.block_size);
    if (c.tokens.size() > full) continue;
    const auto from = full - c.tokens.size();
    if ((from == 0) != c.starts_prompt || from >= prompt.size()) continue;
    const auto equal = common(c.tokens, prompt.subspan(from));
    if (best && from + equal <= best->position) continue;
    best = difference{from + equal, std::nullopt};
    if (equal < c.tokens.size()) best->engine_token = c.tokens[equal];
  }
  return best;
}

}  // namespace infernex::engine
