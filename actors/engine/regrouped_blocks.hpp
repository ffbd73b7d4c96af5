#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/engine/chain_set.hpp"
#include "actors/engine/engine_blocks.hpp"

namespace infernex::engine {

/// Engine blocks of one size as canonical blocks of another, neither of which need divide the other. A canonical block
/// is held on a tier while every engine block that overlaps it, back along one chain, is held there. Engine blocks form
/// a tree of pieces: each keeps the tokens of it that belong to a canonical block not yet complete, and an entry in the
/// chain_set for each canonical block that is complete with it. A piece stays, unheld, while others follow it.
///
/// An extra of any engine block that overlaps a canonical one goes into its key, and so into all after it.
class regrouped_blocks {
 public:
  using id = engine_blocks::id;
  static constexpr id none = engine_blocks::none;

  /// Sizes in tokens, > 0 and not equal. `blocks` holds the pieces' ids as its links.
  regrouped_blocks(std::uint32_t engine_size, std::uint32_t canonical_size, engine_blocks& blocks, chain_set& keys);

  /// Adds to `blocks` a block (without copies) that follows the block `parent` (none: it starts a prompt, whose chain
  /// of keys has this root). `tokens` are engine_size many.
  id add(std::uint64_t hash, std::optional<std::uint32_t> group, id parent, block_key root,
         std::span<const std::uint32_t> tokens, const std::string& extra);
  /// The block has got its first copy of the tier, or lost its last.
  void gained(id block, fb::KvTier tier) { toggle(block, tier, true); }
  void lost(id block, fb::KvTier tier) { toggle(block, tier, false); }
  /// Erases a block without copies, if nothing follows it, and those before it that only it kept.
  void forget(id block);

  std::size_t bytes() const;

 private:
  struct piece {
    block_key root = 0;
    id block = none;
    // Pieces, too: the tree.
    id parent = none;
    id first_child = none;
    id next = none;
    id previous = none;
    // Place in its chain, from 0; the entry of the last canonical block complete with it or before.
    std::uint32_t ordinal = 0;
    chain_set::node last = chain_set::none;
    // Entries of the canonical blocks complete with it, then its own tokens of the incomplete one.
    std::unique_ptr<std::uint32_t[]> content;
  };

  std::uint64_t start(const piece& one) const { return std::uint64_t{one.ordinal} * engine_size_; }
  std::uint64_t end(const piece& one) const { return start(one) + engine_size_; }
  std::size_t completed(const piece& one) const { return end(one) / canonical_size_ - start(one) / canonical_size_; }
  std::size_t kept_tokens(const piece& one) const;

  void gather_tail(const piece& fresh);
  void complete_blocks(piece& fresh, std::span<const std::uint32_t> tokens, const std::string& extra);
  bool ancestors_held(const piece& from, std::uint64_t back_to, fb::KvTier tier) const;
  void toggle(id block, fb::KvTier tier, bool held);
  void toggle_own(const piece& one, fb::KvTier tier, bool held);
  void toggle_straddling(id at, fb::KvTier tier, bool held);
  void unlink(const piece& one, id at);

  std::uint32_t engine_size_;
  std::uint32_t canonical_size_;
  engine_blocks& blocks_;
  chain_set& keys_;
  slab<piece> pieces_;
  std::unordered_map<id, std::string> extras_;  // by piece, of those that overlap an incomplete block
  std::size_t content_bytes_ = 0;
  std::size_t extra_bytes_ = 0;

  // What the canonical block that the next piece completes has so far; and pieces to visit.
  std::vector<std::uint32_t> tail_;
  std::vector<const std::string*> tail_extras_;
  std::vector<std::pair<id, std::uint32_t>> to_visit_;
};

}  // namespace infernex::engine
