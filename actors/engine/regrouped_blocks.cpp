#include "actors/engine/regrouped_blocks.hpp"

#include <algorithm>

namespace infernex::engine {

namespace {

/// What the allocator adds to an array, and a map to a text.
constexpr std::size_t content_overhead = 16;
constexpr std::size_t extra_overhead = 64;

}  // namespace

regrouped_blocks::regrouped_blocks(std::uint32_t engine_size, std::uint32_t canonical_size, engine_blocks& blocks,
                                   chain_set& keys)
    : engine_size_(engine_size), canonical_size_(canonical_size), blocks_(blocks), keys_(keys) {}

std::size_t regrouped_blocks::kept_tokens(const piece& one) const {
  return std::min<std::uint64_t>(engine_size_, end(one) % canonical_size_);
}

regrouped_blocks::id regrouped_blocks::add(std::uint64_t hash, std::optional<std::uint32_t> group, id parent,
                                           block_key root, std::span<const std::uint32_t> tokens,
                                           const std::string& extra) {
  const auto at = pieces_.take();
  auto& fresh = pieces_[at];
  fresh.root = root;
  if (parent != none) {
    fresh.parent = blocks_.link(parent);
    auto& before = pieces_[fresh.parent];
    fresh.root = before.root;
    fresh.ordinal = before.ordinal + 1;
    fresh.last = before.last;
    fresh.next = before.first_child;
    if (fresh.next != none) pieces_[fresh.next].previous = at;
    before.first_child = at;
  }
  gather_tail(fresh);
  complete_blocks(fresh, tokens, extra);
  if (!extra.empty() && kept_tokens(fresh) > 0) {
    extras_.emplace(at, extra);
    extra_bytes_ += extra_overhead + extra.size();
  }
  fresh.block = blocks_.add(hash, at, group);
  return fresh.block;
}

/// The tokens between the last complete canonical block and this piece, and the extras of the pieces they are from.
void regrouped_blocks::gather_tail(const piece& fresh) {
  tail_.resize(start(fresh) % canonical_size_);
  tail_extras_.clear();
  auto missing = tail_.size();
  for (auto at = fresh.parent; missing > 0; at = pieces_[at].parent) {
    const auto& one = pieces_[at];
    const auto kept = kept_tokens(one);
    missing -= kept;
    std::copy_n(one.content.get() + completed(one), kept, tail_.begin() + static_cast<std::ptrdiff_t>(missing));
    if (extras_.empty()) continue;
    if (const auto extra = extras_.find(at); extra != extras_.end()) tail_extras_.push_back(&extra->second);
  }
  std::ranges::reverse(tail_extras_);
}

void regrouped_blocks::complete_blocks(piece& fresh, std::span<const std::uint32_t> tokens, const std::string& extra) {
  const auto entries = completed(fresh);
  const auto kept = kept_tokens(fresh);
  fresh.content = std::make_unique<std::uint32_t[]>(entries + kept);
  content_bytes_ += (entries + kept) * sizeof(std::uint32_t);
  auto key = fresh.last == chain_set::none ? fresh.root : keys_.key_of(fresh.last);
  std::size_t used = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    const bool straddles = i == 0 && !tail_.empty();
    if (straddles) {
      // Engines repeat what an image is in each block it lies in: once is enough, whatever the size of their blocks.
      if (!extra.empty()) tail_extras_.push_back(&extra);
      for (auto each = tail_extras_.begin(); each != tail_extras_.end(); ++each)
        if (std::none_of(tail_extras_.begin(), each, [&](const auto* seen) { return *seen == **each; }))
          key = with_extra(key, **each);
      used = canonical_size_ - tail_.size();
      tail_.insert(tail_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(used));
      key = next_key(key, tail_);
    } else {
      key = next_key(with_extra(key, extra), tokens.subspan(used, canonical_size_));
      used += canonical_size_;
    }
    fresh.last = keys_.attach(key, fresh.last);
    keys_.pin(fresh.last);
    fresh.content[i] = fresh.last;
  }
  std::copy(tokens.end() - static_cast<std::ptrdiff_t>(kept), tokens.end(), fresh.content.get() + entries);
}

/// Whether what comes before this piece is held, back to a position in the prompt.
bool regrouped_blocks::ancestors_held(const piece& from, std::uint64_t back_to, fb::KvTier tier) const {
  auto position = start(from);
  for (auto at = from.parent; position > back_to; at = pieces_[at].parent) {
    if (!blocks_.is_held(pieces_[at].block, tier)) return false;
    position -= engine_size_;
  }
  return true;
}

/// Each canonical block that overlaps this one and is otherwise held, along some chain, has got a holder or lost one.
void regrouped_blocks::toggle(id block, fb::KvTier tier, bool held) {
  const auto at = blocks_.link(block);
  const auto& one = pieces_[at];
  // In the order that leaves no holes on the way.
  if (held) toggle_own(one, tier, held);
  toggle_straddling(at, tier, held);
  if (!held) toggle_own(one, tier, held);
}

void regrouped_blocks::toggle_own(const piece& one, fb::KvTier tier, bool held) {
  std::span<const chain_set::node> entries(one.content.get(), completed(one));
  const auto boundary = start(one) / canonical_size_ * canonical_size_;
  if (!entries.empty() && !ancestors_held(one, boundary, tier)) entries = entries.subspan(1);
  if (held) {
    for (const auto entry : entries) keys_.hold(entry, tier);
  } else {
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) keys_.release(*entry, tier);
  }
}

/// The canonical block in which this piece ends is complete some pieces later, in as many as there are branches.
void regrouped_blocks::toggle_straddling(id at, fb::KvTier tier, bool held) {
  const auto& from = pieces_[at];
  const auto inside = end(from) % canonical_size_;
  if (inside == 0 || from.first_child == none || !ancestors_held(from, end(from) - inside, tier)) return;
  const auto distance = (canonical_size_ - inside + engine_size_ - 1) / engine_size_;
  const auto visit_children = [this](const piece& of, std::uint32_t level) {
    for (auto child = of.first_child; child != none; child = pieces_[child].next) to_visit_.emplace_back(child, level);
  };
  visit_children(from, 1);
  while (!to_visit_.empty()) {
    const auto [child, level] = to_visit_.back();
    to_visit_.pop_back();
    const auto& one = pieces_[child];
    if (!blocks_.is_held(one.block, tier)) continue;
    if (level < distance)
      visit_children(one, level + 1);
    else if (held)
      keys_.hold(one.content[0], tier);
    else
      keys_.release(one.content[0], tier);
  }
}

void regrouped_blocks::forget(id block) {
  while (block != none && !blocks_.is_held(block)) {
    const auto at = blocks_.link(block);
    auto& one = pieces_[at];
    if (one.first_child != none) return;
    const auto parent = one.parent;
    unlink(one, at);
    content_bytes_ -= (completed(one) + kept_tokens(one)) * sizeof(std::uint32_t);
    for (auto i = completed(one); i > 0; --i) keys_.unpin(one.content[i - 1]);
    if (const auto extra = extras_.find(at); extra != extras_.end()) {
      extra_bytes_ -= extra_overhead + extra->second.size();
      extras_.erase(extra);
    }
    pieces_.give_back(at);
    blocks_.erase(block);
    block = parent == none ? none : pieces_[parent].block;
  }
}

void regrouped_blocks::unlink(const piece& one, id at) {
  if (one.next != none) pieces_[one.next].previous = one.previous;
  if (one.previous != none)
    pieces_[one.previous].next = one.next;
  else if (one.parent != none && pieces_[one.parent].first_child == at)
    pieces_[one.parent].first_child = one.next;
}

std::size_t regrouped_blocks::bytes() const {
  return pieces_.bytes() + pieces_.size() * content_overhead + content_bytes_ + extra_bytes_ +
         tail_.capacity() * sizeof(std::uint32_t);
}

}  // namespace infernex::engine
