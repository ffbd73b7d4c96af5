#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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
  /// A non-negative integer no larger than `max`, with or without a sign in its encoding.
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
  /// Precondition: !done(). A value is stepped over when the next one is wanted, so that reading it costs no
  /// second walk.
  value next();
  /// The caller knows where the value it got last ends.
  void passed(const char* end) {
    at_ = end;
    unread_ = false;
  }
  /// Where the whole array or map ends. Walks what is left.
  const char* end();

 private:
  const char* at_;
  bool unread_ = false;
  std::uint32_t size_ = 0;
  std::uint64_t left_ = 0;
};

/// The non-negative 32-bit integers of a list. False: it is no list, or something else is in it.
bool read_numbers(value list, std::vector<std::uint32_t>& into);

/// Checks that `bytes` are exactly one msgpack value. Errors: malformed_input (truncated, invalid, or
/// followed by more bytes).
result<value> check(std::span<const std::uint8_t> bytes);

}  // namespace infernex::engine::msgpack
