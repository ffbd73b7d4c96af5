#include "actors/router/recent_keys.hpp"

namespace infernex::router {

std::uint32_t recent_keys::find(key k) const {
  if (table_.empty()) return none;
  const auto mask = static_cast<std::uint32_t>(table_.size()) - 1;
  for (auto i = home(k);; i = (i + 1) & mask) {
    if (table_[i] == none) return none;
    if (nodes_[table_[i]].name == k) return i;
  }
}

void recent_keys::place(std::uint32_t at_node) {
  const auto mask = static_cast<std::uint32_t>(table_.size()) - 1;
  auto i = home(nodes_[at_node].name);
  while (table_[i] != none) i = (i + 1) & mask;
  table_[i] = at_node;
}

void recent_keys::resize(std::uint32_t capacity) {
  const auto before = this->capacity();
  if (capacity == 0) {
    *this = recent_keys{};
    return;
  }
  nodes_.reserve(capacity);
  nodes_.resize(capacity);
  for (auto i = before; i < capacity; ++i) nodes_[i].newer = i + 1 < capacity ? i + 1 : free_;
  free_ = before;
  table_.clear();
  table_.shrink_to_fit();
  table_.resize(std::size_t{2} * capacity, none);
  for (auto at = oldest_; at != none; at = nodes_[at].newer) place(at);
}

void recent_keys::unlink(std::uint32_t at_node) {
  const auto& n = nodes_[at_node];
  (n.older == none ? oldest_ : nodes_[n.older].newer) = n.newer;
  (n.newer == none ? newest_ : nodes_[n.newer].older) = n.older;
}

void recent_keys::link_newest(std::uint32_t at_node) {
  auto& n = nodes_[at_node];
  n.older = newest_;
  n.newer = none;
  (newest_ == none ? oldest_ : nodes_[newest_].newer) = at_node;
  newest_ = at_node;
}

bool recent_keys::touch(key k, time_point at) {
  const auto position = find(k);
  const bool known = position != none;
  const auto at_node = known ? table_[position] : free_;
  auto& n = nodes_[at_node];
  n.touched = at;
  if (known) {
    if (newest_ == at_node) return true;
    unlink(at_node);
  } else {
    free_ = n.newer;
    n.name = k;
    place(at_node);
    ++size_;
  }
  link_newest(at_node);
  return known;
}

void recent_keys::erase_at(std::uint32_t position) {
  const auto at_node = table_[position];
  unlink(at_node);
  nodes_[at_node].newer = free_;
  free_ = at_node;
  --size_;
  // Moves back whoever was placed behind the gap only because this one stood in the way.
  const auto mask = static_cast<std::uint32_t>(table_.size()) - 1;
  auto gap = position;
  for (auto i = (gap + 1) & mask; table_[i] != none; i = (i + 1) & mask) {
    const auto wanted = home(nodes_[table_[i]].name);
    if (((i - wanted) & mask) < ((i - gap) & mask)) continue;
    table_[gap] = table_[i];
    gap = i;
  }
  table_[gap] = none;
}

bool recent_keys::erase(key k, time_point touched_at) {
  const auto position = find(k);
  if (position == none || nodes_[table_[position]].touched != touched_at) return false;
  erase_at(position);
  return true;
}

recent_keys::key recent_keys::pop_oldest() {
  const auto k = nodes_[oldest_].name;
  erase_at(find(k));
  return k;
}

}  // namespace infernex::router
