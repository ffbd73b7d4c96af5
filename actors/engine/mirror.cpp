#include "actors/engine/mirror.hpp"

#include <algorithm>

namespace infernex::engine {

namespace {

/// Groups of a hybrid model whose removals are to be ignored; models have a handful.
constexpr std::size_t max_sparse_groups = 64;

const std::string& extra_of(const stored_blocks& blocks, std::size_t i) {
  static const std::string none;
  return i < blocks.extras.size() ? blocks.extras[i] : none;
}

std::span<const std::uint32_t> tokens_of(const stored_blocks& blocks, std::size_t i) {
  return std::span(blocks.tokens).subspan(i * blocks.block_size, blocks.block_size);
}

}  // namespace

mirror::mirror(mirror_settings settings)
    : settings_(std::move(settings)), parked_(settings_.max_parked_blocks, settings_.max_parked_bytes) {}

void mirror::apply(const kv_event& event) {
  if (const auto* stored = std::get_if<stored_blocks>(&event)) return store(*stored);
  if (const auto* removed = std::get_if<removed_blocks>(&event)) return remove(*removed);
  clear();
}

void mirror::clear() {
  regrouped_.reset();
  keys_ = {};
  blocks_ = {};
  parked_.clear();
  plain_root_.reset();
  sparse_groups_.clear();
  engine_block_size_.reset();
  other_block_size_.reset();
  left_out_ = false;
  cleared_ = true;
}

key_difference mirror::take_difference() {
  auto change = keys_.take_difference();
  change.cleared = std::exchange(cleared_, false);
  return change;
}

std::optional<std::uint32_t> mirror::block_size() const {
  return settings_.canonical_block_size ? settings_.canonical_block_size : engine_block_size_;
}

std::size_t mirror::bytes() const {
  return keys_.bytes() + blocks_.bytes() + parked_.bytes() + (regrouped_ ? regrouped_->bytes() : 0);
}

void mirror::leave_out(drop_reason reason, std::size_t count) {
  dropped_[reason] += count;
  left_out_ = true;
}

bool mirror::is_full() const {
  return blocks_.size() >= settings_.max_blocks || (regrouped_ && keys_.size() >= settings_.max_blocks);
}

bool mirror::is_usable(const stored_blocks& blocks) {
  const bool copies_sparse = blocks.tokens.empty() && blocks.group && sparse_groups_.contains(*blocks.group);
  if (copies_sparse || !holds_every_token(blocks.attention_kind)) {
    if (blocks.group && sparse_groups_.size() < max_sparse_groups) sparse_groups_.insert(*blocks.group);
    ++dropped_[drop_reason::sparse_group];
    return false;
  }
  if (blocks.tokens.empty()) return true;
  if (blocks.tokens.size() != std::uint64_t{blocks.block_size} * blocks.hashes.size()) {
    leave_out(drop_reason::malformed_event);
    return false;
  }
  if (!engine_block_size_) {
    engine_block_size_ = blocks.block_size;
    if (block_size() != engine_block_size_) regrouped_.emplace(blocks.block_size, *block_size(), blocks_, keys_);
  }
  if (blocks.block_size == *engine_block_size_) return true;
  other_block_size_ = blocks.block_size;
  leave_out(drop_reason::block_size_mismatch);
  return false;
}

void mirror::store(const stored_blocks& blocks) {
  if (blocks.hashes.empty() || !is_usable(blocks)) return;
  if (blocks.tokens.empty()) return add_copies(blocks);
  if (!blocks.parent) return place(blocks, none);
  if (const auto parent = blocks_.find(*blocks.parent); parent != none && blocks_.is_held(parent))
    return place(blocks, parent);
  const auto is_known = [this](auto hash) {
    const auto block = blocks_.find(hash);
    return block != none && blocks_.is_held(block);
  };
  if (std::ranges::all_of(blocks.hashes, is_known)) return add_copies(blocks);
  park(blocks);
}

void mirror::park(stored_blocks blocks) {
  const auto count = blocks.hashes.size();
  if (!parked_.park(std::move(blocks))) leave_out(drop_reason::parking_full, count);
}

/// The copy of a block that is parked itself.
void mirror::park(stored_blocks block, const stored_blocks& copy) {
  block.tier = copy.tier;
  block.group = copy.group;
  park(std::move(block));
}

/// Of blocks that are known already, so that their tokens need not be.
void mirror::add_copies(const stored_blocks& blocks) {
  for (const auto hash : blocks.hashes) {
    const auto block = blocks_.find(hash);
    if (block != none && blocks_.is_held(block))
      add_copy(block, blocks);
    else if (auto waiting = parked_.find(hash))
      park(*std::move(waiting), blocks);
    else
      leave_out(drop_reason::unknown_block);
  }
}

block_key mirror::root_of(const stored_blocks& blocks) {
  const key_root root{settings_.model, blocks.adapter, blocks.salt, *block_size()};
  if (!blocks.adapter.empty() || !blocks.salt.empty()) return root_key(root);
  if (!plain_root_) plain_root_ = root_key(root);
  return *plain_root_;
}

/// Gives these blocks, and all that waited for one of them, their keys.
void mirror::place(const stored_blocks& blocks, id parent) {
  follow_up more;
  place_chain(blocks, nullptr, parent, more);
  while (!more.waiting.empty()) {
    const auto [entry, after] = std::move(more.waiting.back());
    more.waiting.pop_back();
    place_chain(entry.blocks, &entry.gone, after, more);
  }
  for (const auto hash : more.links)
    if (const auto link = blocks_.find(hash); link != none && !blocks_.is_held(link)) forget(link);
}

void mirror::place_chain(const stored_blocks& blocks, const std::vector<bool>* gone, id parent, follow_up& more) {
  const auto count = blocks.hashes.size();
  const auto root = parent == none ? root_of(blocks) : block_key{};
  block_key before = root;
  if (parent != none && !regrouped_) before = keys_.key_of(blocks_.link(parent));
  for (std::size_t i = 0; i < count; ++i) {
    if (i % at_once == 0) before = prepare(blocks, i, before);
    const auto hash = blocks.hashes[i];
    const bool is_gone = gone != nullptr && (*gone)[i];
    auto block = blocks_.find(hash);
    if (block == none) {
      if (is_full()) return leave_out(drop_reason::mirror_full, count - i);
      block = add(blocks, i, parent, root);
      if (is_gone) more.links.push_back(hash);
    }
    if (!is_gone) add_copy(block, blocks);
    parent = block;
    if (parked_.size() == 0) continue;
    for (auto& child : parked_.take_children(hash)) more.waiting.emplace_back(std::move(child), block);
  }
}

/// Asks for the memory that the next at_once blocks will need, all at once, and works out their keys meanwhile.
/// Returns the last one's key.
block_key mirror::prepare(const stored_blocks& blocks, std::size_t first, block_key before) {
  const auto end = std::min(blocks.hashes.size(), first + at_once);
  for (auto i = first; i < end; ++i) blocks_.prefetch(blocks.hashes[i]);
  if (regrouped_) return before;
  for (auto i = first; i < end; ++i) {
    before = next_key(with_extra(before, extra_of(blocks, i)), tokens_of(blocks, i));
    keys_.prefetch(before);
    prepared_[i - first] = before;
  }
  return before;
}

/// The same for blocks that are to go.
void mirror::prepare(std::span<const std::uint64_t> hashes) {
  for (const auto hash : hashes) blocks_.prefetch(hash);
  if (regrouped_) return;
  for (const auto hash : hashes)
    if (const auto block = blocks_.find(hash); block != none) keys_.prefetch(keys_.key_of(blocks_.link(block)));
}

mirror::id mirror::add(const stored_blocks& blocks, std::size_t i, id parent, block_key root) {
  const auto hash = blocks.hashes[i];
  if (regrouped_) return regrouped_->add(hash, blocks.group, parent, root, tokens_of(blocks, i), extra_of(blocks, i));
  const auto before = parent == none ? chain_set::none : blocks_.link(parent);
  return blocks_.add(hash, keys_.attach(prepared_[i % at_once], before), blocks.group);
}

void mirror::add_copy(id block, const stored_blocks& from) {
  if (!blocks_.add_copy(block, from.tier, from.group)) return;
  if (regrouped_)
    regrouped_->gained(block, from.tier);
  else
    keys_.hold(blocks_.link(block), from.tier);
}

void mirror::remove(const removed_blocks& blocks) {
  if (blocks.group && sparse_groups_.contains(*blocks.group)) return;
  const auto& hashes = blocks.hashes;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i % at_once == 0) prepare(std::span(hashes).subspan(i, std::min(at_once, hashes.size() - i)));
    const auto block = blocks_.find(hashes[i]);
    const auto removed =
        block == none ? engine_blocks::removal::unknown : blocks_.remove_copy(block, blocks.tier, blocks.group);
    if (removed == engine_blocks::removal::unknown && !parked_.remove(hashes[i], blocks.tier))
      ++dropped_[drop_reason::unknown_block];
    if (removed != engine_blocks::removal::last_of_tier) continue;
    if (regrouped_)
      regrouped_->lost(block, blocks.tier);
    else
      keys_.release(blocks_.link(block), blocks.tier);
    if (!blocks_.is_held(block)) forget(block);
  }
}

void mirror::forget(id block) {
  if (regrouped_) return regrouped_->forget(block);
  const auto entry = blocks_.link(block);
  blocks_.erase(block);
  keys_.settle(entry);
}

}  // namespace infernex::engine
