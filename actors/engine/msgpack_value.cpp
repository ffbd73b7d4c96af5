#include "actors/engine/msgpack_value.hpp"

#include <msgpuck.h>

namespace infernex::engine::msgpack {

bool value::is_nil() const { return mp_typeof(*at_) == MP_NIL; }
bool value::is_array() const { return mp_typeof(*at_) == MP_ARRAY; }
bool value::is_map() const { return mp_typeof(*at_) == MP_MAP; }

std::optional<std::uint64_t> value::bits() const {
  const char* at = at_;
  switch (mp_typeof(*at)) {
    case MP_UINT:
      return mp_decode_uint(&at);
    case MP_INT:
      return static_cast<std::uint64_t>(mp_decode_int(&at));
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> value::integer(std::uint64_t max) const {
  const char* at = at_;
  if (mp_typeof(*at) != MP_UINT) return std::nullopt;
  const std::uint64_t number = mp_decode_uint(&at);
  return number <= max ? std::optional(number) : std::nullopt;
}

std::optional<double> value::number() const {
  const char* at = at_;
  switch (mp_typeof(*at)) {
    case MP_UINT:
      return static_cast<double>(mp_decode_uint(&at));
    case MP_INT:
      return static_cast<double>(mp_decode_int(&at));
    case MP_FLOAT:
      return mp_decode_float(&at);
    case MP_DOUBLE:
      return mp_decode_double(&at);
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> value::text() const {
  if (mp_typeof(*at_) != MP_STR) return std::nullopt;
  return bytes();
}

std::optional<std::string_view> value::bytes() const {
  const char* at = at_;
  const auto type = mp_typeof(*at);
  if (type != MP_STR && type != MP_BIN) return std::nullopt;
  std::uint32_t size = 0;
  const char* data = mp_decode_strbin(&at, &size);
  return std::string_view(data, size);
}

std::string_view value::encoded() const {
  const char* end = at_;
  mp_next(&end);
  return {at_, static_cast<std::size_t>(end - at_)};
}

elements::elements(value of) : at_(of.position()) {
  if (of.is_array()) {
    left_ = size_ = mp_decode_array(&at_);
  } else if (of.is_map()) {
    size_ = mp_decode_map(&at_);
    left_ = 2ULL * size_;
  }
}

value elements::next() {
  const value result(at_);
  mp_next(&at_);
  --left_;
  return result;
}

namespace {

/// What follows a value's first byte: length bytes that say how much content there is, fixed content, or
/// (for arrays and maps) values.
struct layout {
  std::size_t length_bytes = 0;
  std::size_t content = 0;
  std::uint64_t values = 0;
  /// The length counts values, so many for each.
  std::uint64_t values_each = 0;
  bool valid = true;
};

layout layout_of(std::uint8_t first) {
  if (first <= 0x7f || first >= 0xe0) return {};             // small integers
  if (first <= 0x8f) return {0, 0, 2ULL * (first & 0x0f)};   // small maps
  if (first <= 0x9f) return {0, 0, first & 0x0fULL};         // small arrays
  if (first <= 0xbf) return {0, first & std::size_t{0x1f}};  // small strings
  switch (first) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return {};  // nil, false, true
    case 0xc4:
    case 0xd9:
      return {1};  // binary, string
    case 0xc5:
    case 0xda:
      return {2};
    case 0xc6:
    case 0xdb:
      return {4};
    case 0xc7:
      return {1, 1};  // extension: a type byte more
    case 0xc8:
      return {2, 1};
    case 0xc9:
      return {4, 1};
    case 0xca:
      return {0, 4};  // float, double
    case 0xcb:
      return {0, 8};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return {0, std::size_t{1} << (first - 0xcc)};  // unsigned
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return {0, std::size_t{1} << (first - 0xd0)};  // signed
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return {0, 1 + (std::size_t{1} << (first - 0xd4))};
    case 0xdc:
      return {2, 0, 0, 1};  // array
    case 0xdd:
      return {4, 0, 0, 1};
    case 0xde:
      return {2, 0, 0, 2};  // map
    case 0xdf:
      return {4, 0, 0, 2};
    default:
      return {0, 0, 0, 0, false};
  }
}

/// The end of the value at `at`, or null. Written out here because msgpuck's own check counts in an int, which
/// a forged header of a large map overflows. Once no count can exceed the bytes left, its readers are safe.
const std::uint8_t* end_of_value(const std::uint8_t* at, const std::uint8_t* end) {
  for (std::uint64_t values = 1; values > 0;) {
    --values;
    if (at == end) return nullptr;
    const auto found = layout_of(*at++);
    if (!found.valid || static_cast<std::size_t>(end - at) < found.length_bytes) return nullptr;
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < found.length_bytes; ++i) length = length << 8 | *at++;
    const auto left = static_cast<std::uint64_t>(end - at);
    const auto content = found.content + (found.values_each == 0 ? length : 0);
    if (left < content) return nullptr;
    at += content;
    values += found.values + length * found.values_each;
    // Every value takes a byte at least.
    if (values > left - content) return nullptr;
  }
  return at;
}

}  // namespace

result<value> check(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return error{errc::malformed_input, "empty msgpack payload"};
  const auto* begin = bytes.data();
  const auto* end = begin + bytes.size();
  const auto* value_end = end_of_value(begin, end);
  if (value_end == nullptr)
    return error{errc::malformed_input,
                 "msgpack payload of " + std::to_string(bytes.size()) + " bytes is truncated or invalid"};
  if (value_end != end)
    return error{errc::malformed_input, std::to_string(end - value_end) + " bytes follow the msgpack payload"};
  return value(reinterpret_cast<const char*>(begin));
}

}  // namespace infernex::engine::msgpack
