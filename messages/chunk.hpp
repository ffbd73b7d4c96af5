#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace infernex {

/// Immutable bytes with shared ownership: what a message is made of. Copying costs a counter, never the
/// bytes. The owner's deleter may do more than free memory: for a message from the bus it hands the
/// subscription's credit back, so do not keep chunks (or views of them) longer than the handling of a
/// message takes; copy out what is to stay.
class chunk {
 public:
  chunk() = default;
  chunk(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  /// A chunk that owns a copy of `bytes`, aligned for FlatBuffers. `also` (may be null) lives as long.
  static chunk copy_of(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> also = nullptr);

  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::shared_ptr<const void> owner_;
};

}  // namespace infernex
