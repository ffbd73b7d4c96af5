#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace infernex::router {

/// Block keys in order of their last use: a hash table over a pool of list nodes, all of it flat. 32 bytes a key of
/// capacity (a node of 24, two table entries of 4). The owner bounds the capacity; nothing grows by itself.
class recent_keys {
 public:
  using key = std::uint64_t;
  using time_point = std::chrono::steady_clock::time_point;

  static constexpr std::uint32_t least_capacity = 64;
  /// Bytes of a table of this capacity, a power of two or 0.
  static constexpr std::uint64_t footprint(std::uint32_t capacity) {
    return std::uint64_t{capacity} * (sizeof(node) + 2 * sizeof(std::uint32_t));
  }

  std::uint32_t size() const { return size_; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(nodes_.size()); }
  /// To a larger power of two, or to 0 when empty.
  void resize(std::uint32_t capacity);

  bool contains(key k) const { return find(k) != none; }
  /// Makes it the latest. True: it was known. Precondition for a new one: size() < capacity(). Times never go back.
  bool touch(key k, time_point at);
  /// Takes it out, if it was last touched at exactly this time.
  bool erase(key k, time_point touched_at);
  /// The key that was touched longest ago. Precondition: size() > 0.
  key pop_oldest();
  time_point oldest() const { return nodes_[oldest_].touched; }

 private:
  static constexpr std::uint32_t none = 0xffffffff;
  struct node {
    key name;
    time_point touched;
    std::uint32_t older;
    std::uint32_t newer;  // of a free node: the next free one
  };

  std::uint32_t home(key k) const {
    return static_cast<std::uint32_t>((k * 0x9E3779B97F4A7C15ULL) >> 32) &
           (static_cast<std::uint32_t>(table_.size()) - 1);
  }
  /// Position in the table; `none` if it is not there.
  std::uint32_t find(key k) const;
  void place(std::uint32_t at_node);
  void unlink(std::uint32_t at_node);
  void link_newest(std::uint32_t at_node);
  void erase_at(std::uint32_t position);

  std::vector<node> nodes_;
  std::vector<std::uint32_t> table_;  // node numbers; open addressing, linear probing, at most half full
  std::uint32_t oldest_ = none;
  std::uint32_t newest_ = none;
  std::uint32_t free_ = none;
  std::uint32_t size_ = 0;
};

}  // namespace infernex::router
