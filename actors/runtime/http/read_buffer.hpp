#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace infernex::http {

/// Bytes read from a socket and not parsed yet. consume() moves nothing, so it is safe while a read into the
/// prepared space is under way; prepare() is not. Internal to this folder.
class read_buffer {
 public:
  /// What an idle connection costs.
  static constexpr std::size_t small = 4 << 10;

  bool empty() const { return begin_ == end_; }
  std::size_t size() const { return end_ - begin_; }
  char* data() { return memory_.get() + begin_; }
  std::string_view view() const { return {memory_.get() + begin_, size()}; }
  void consume(std::size_t count) { begin_ += count; }
  void clear() { begin_ = end_; }

  /// Space for `count` more bytes. Moves what is there: views into the buffer end here.
  std::span<char> prepare(std::size_t count) {
    if (empty()) begin_ = end_ = 0;
    const bool oversized = end_ == 0 && count <= small && capacity_ > 4 * small;
    if (oversized || size() + count > capacity_) {
      const std::size_t wanted = oversized ? small : std::max(size() + count, 2 * size());
      auto grown = std::make_unique_for_overwrite<char[]>(wanted);
      if (!empty()) std::memcpy(grown.get(), data(), size());
      end_ = size();
      begin_ = 0;
      memory_ = std::move(grown);
      capacity_ = wanted;
    } else if (end_ + count > capacity_) {
      std::memmove(memory_.get(), data(), size());
      end_ = size();
      begin_ = 0;
    }
    return {memory_.get() + end_, count};
  }
  void commit(std::size_t count) { end_ += count; }

 private:
  std::unique_ptr<char[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace infernex::http
