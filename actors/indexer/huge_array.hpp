#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace infernex::indexer {

/// A zeroed array at random places of which one reads: on huge pages where it is large enough, for most of the cost
/// of such a read is looking up its page.
template <class T>
class huge_array {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  explicit huge_array(std::size_t count) : items_(make(count)) {}
  T& operator[](std::size_t i) { return items_.get()[i]; }
  const T& operator[](std::size_t i) const { return items_.get()[i]; }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  struct release {
    void operator()(T* items) const { std::free(items); }
  };
  static T* make(std::size_t count) {
    const auto bytes = count * sizeof(T);
    void* memory = nullptr;
    if (bytes >= huge_page) {
      memory = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
      if (memory) ::madvise(memory, bytes, MADV_HUGEPAGE);  // only advice: without it the pages are small
    } else {
      memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    if (!memory) throw std::bad_alloc();
    auto* items = static_cast<T*>(memory);
    std::uninitialized_value_construct_n(items, count);
    return items;
  }
  std::unique_ptr<T, release> items_;
};

}  // namespace infernex::indexer
