#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace infernex::test {

/// Turns a fuzzer's bytes into small choices. At the end everything is 0.
class byte_reader {
 public:
  byte_reader(const std::uint8_t* data, std::size_t size) : left_(data, size) {}
  bool done() const { return left_.empty(); }
  std::uint8_t byte() {
    if (left_.empty()) return 0;
    const auto value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  /// 0 .. bound - 1.
  std::uint32_t below(std::uint32_t bound) { return byte() % bound; }
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto taken = left_.first(count < left_.size() ? count : left_.size());
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::span<const std::uint8_t> rest() { return bytes(left_.size()); }

 private:
  std::span<const std::uint8_t> left_;
};

}  // namespace infernex::test
