#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include <xxhash.h>

namespace infernex::router {

/// Finds the rows of one decision by their engines' names: a hash table that is made anew for each decision that has
/// many names to look up. A thousand binary searches over names that begin alike took longer than everything else.
class row_finder {
 public:
  /// `name_of(i)` for i < count; the names must live as long as they are looked up.
  template <class NameOf>
  void fill(std::size_t count, NameOf name_of) {
    clear(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto at = hash(name_of(i)) & mask_;
      while (cells_[at] != none) at = (at + 1) & mask_;
      cells_[at] = static_cast<std::uint32_t>(i);
    }
  }

  /// Empty, with room for so many rows.
  void clear(std::size_t most) {
    cells_.assign(std::bit_ceil(most * 2 + 1), none);
    mask_ = cells_.size() - 1;
  }
  /// The row of that name; where there is none, it is `fresh` from now on.
  template <class NameOf>
  std::uint32_t find_or_add(std::string_view name, std::uint32_t fresh, NameOf name_of) {
    auto at = hash(name) & mask_;
    for (; cells_[at] != none; at = (at + 1) & mask_)
      if (name_of(cells_[at]) == name) return cells_[at];
    return cells_[at] = fresh;
  }

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  /// `none` if there is no row of that name.
  template <class NameOf>
  std::uint32_t find(std::string_view name, NameOf name_of) const {
    for (auto at = hash(name) & mask_; cells_[at] != none; at = (at + 1) & mask_)
      if (name_of(cells_[at]) == name) return cells_[at];
    return none;
  }

 private:
  static std::uint64_t hash(std::string_view name) { return XXH3_64bits(name.data(), name.size()); }

  /// Kept, so that the next decision allocates nothing.
  std::vector<std::uint32_t> cells_;
  std::size_t mask_ = 0;
};

}  // namespace infernex::router
