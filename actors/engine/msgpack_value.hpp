#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "messages/result.hpp"

namespace infernex::engine::msgpack {

/// A value inside a buffer that check() has found well-formed. Reading one as the wrong type gives nothing,
/// never an assertion. Valid as long as the buffer.
class value {
 public:
  explicit value(const char* at) : at_(at) {}

  bool is_nil() const;
  bool is_array() const;
  bool is_map() const;
  /// An integer's 64 bits; a negative one in two's complement.
  std::optional<std::uint64_t> bits() const;
  /// A non-negative integer no larger than `max`.
  std::optional<std::uint64_t> integer(std::uint64_t max) const;
  std::optional<double> number() const;
  std::optional<std::string_view> text() const;
  /// Binary or text.
  std::optional<std::string_view> bytes() const;
  /// The value as it is encoded.
  std::string_view encoded() const;

  const char* position() const { return at_; }

 private:
  const char* at_;
};

/// Walks the elements of an array, or the keys and values of a map in turn. Anything else is empty.
class elements {
 public:
  explicit elements(value of);
  /// Elements, or pairs, at the start.
  std::uint32_t size() const { return size_; }
  bool done() const { return left_ == 0; }
  /// Precondition: !done().
  value next();

 private:
  const char* at_;
  std::uint32_t size_ = 0;
  std::uint64_t left_ = 0;
};

/// Checks that `bytes` are exactly one msgpack value. Errors: malformed_input (truncated, invalid, or
/// followed by more bytes).
result<value> check(std::span<const std::uint8_t> bytes);

}  // namespace infernex::engine::msgpack
