#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace infernex::engine {

/// Finds the elements of a slab by a 64-bit hash: open addressing, 8 bytes a slot. A slot has the element's id and the
/// upper half of its hash, which filters what is compared and says where the slot belongs, so that neither growth nor
/// deletion looks at the elements. Precondition: the upper half of the hashes is well mixed.
class hash_index {
 public:
  using id = std::uint32_t;
  static constexpr id none = std::numeric_limits<id>::max();

  /// The element with this hash for which `is_it(id)` holds, or none.
  template <class Test>
  id find(std::uint64_t hash, Test&& is_it) const {
    if (slots_.empty()) return none;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (auto at = home(tag);; at = next(at)) {
      const auto& here = slots_[at];
      if (here.element == none) return none;
      if (here.tag == tag && is_it(here.element)) return here.element;
    }
  }
  void prefetch(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[home(static_cast<std::uint32_t>(hash >> 32))]);
  }
  /// Precondition: the element is not in the index.
  void insert(std::uint64_t hash, id element) {
    if ((used_ + 1) * 4 > slots_.size() * 3) grow();
    ++used_;
    put({static_cast<std::uint32_t>(hash >> 32), element});
  }
  /// Precondition: the element is in the index, under this hash.
  void erase(std::uint64_t hash, id element) {
    auto hole = home(static_cast<std::uint32_t>(hash >> 32));
    while (slots_[hole].element != element) hole = next(hole);
    // What stands behind moves up, so that no search ends too early.
    for (auto at = next(hole); slots_[at].element != none; at = next(at)) {
      const auto wanted = home(slots_[at].tag);
      const bool may_stay = hole <= at ? hole < wanted && wanted <= at : hole < wanted || wanted <= at;
      if (may_stay) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole].element = none;
    --used_;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& each : slots_)
      if (each.element != none) visit(each.element);
  }
  std::size_t size() const { return used_; }
  std::size_t bytes() const { return slots_.capacity() * sizeof(slot); }

 private:
  struct slot {
    std::uint32_t tag = 0;
    id element = none;
  };

  /// In the order of the tags, so that growing walks both tables from front to back.
  std::size_t home(std::uint32_t tag) const { return (std::uint64_t{tag} * slots_.size()) >> 32; }
  std::size_t next(std::size_t at) const { return at + 1 == slots_.size() ? 0 : at + 1; }
  void put(slot fresh) {
    auto at = home(fresh.tag);
    while (slots_[at].element != none) at = next(at);
    slots_[at] = fresh;
  }
  void grow() {
    const auto before = std::move(slots_);
    slots_ = std::vector<slot>(before.size() < 64 ? 64 : before.size() + before.size() / 2);
    for (const auto& each : before)
      if (each.element != none) put(each);
  }

  std::vector<slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace infernex::engine
