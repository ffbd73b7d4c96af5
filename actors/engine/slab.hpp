#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace infernex::engine {

/// Elements named by small numbers, in blocks of memory that never move: growth copies nothing, and what is given
/// back is used again first.
template <class T>
class slab {
 public:
  using id = std::uint32_t;
  static constexpr id none = std::numeric_limits<id>::max();

  T& operator[](id at) { return chunks_[at / chunk][at % chunk]; }
  const T& operator[](id at) const { return chunks_[at / chunk][at % chunk]; }

  /// A default-constructed element.
  id take() {
    ++size_;
    if (!free_.empty()) {
      const id at = free_.back();
      free_.pop_back();
      return at;
    }
    if (used_ == chunks_.size() * chunk) chunks_.push_back(std::make_unique<T[]>(chunk));
    return used_++;
  }
  void give_back(id at) {
    (*this)[at] = T{};
    free_.push_back(at);
    --size_;
  }

  std::size_t size() const { return size_; }
  std::size_t bytes() const {
    return chunks_.size() * (chunk * sizeof(T) + sizeof(void*)) + free_.capacity() * sizeof(id);
  }

 private:
  static constexpr id chunk = 4096;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<id> free_;
  id used_ = 0;
  std::size_t size_ = 0;
};

}  // namespace infernex::engine
