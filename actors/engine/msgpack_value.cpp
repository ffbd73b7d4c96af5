#include "actors/engine/msgpack_value.hpp"

#include <array>
#include <limits>

#include <msgpuck.h>

namespace infernex::engine::msgpack {

namespace {

/// What follows a value's first byte: length bytes that say how much content there is, fixed content, or
/// (for arrays and maps) values.
struct layout {
  std::uint8_t length_bytes = 0;
  std::uint8_t content = 0;
  std::uint8_t values = 0;
  /// The length counts values, so many for each.
  std::uint8_t values_each = 0;
  bool valid = true;
};

constexpr layout layout_of(std::uint8_t first) {
  const auto power = [](int exponent) { return static_cast<std::uint8_t>(1 << exponent); };
  if (first <= 0x7f || first >= 0xe0) return {};                                    // small integers
  if (first <= 0x8f) return {0, 0, static_cast<std::uint8_t>(2 * (first & 0x0f))};  // small maps
  if (first <= 0x9f) return {0, 0, static_cast<std::uint8_t>(first & 0x0f)};        // small arrays
  if (first <= 0xbf) return {0, static_cast<std::uint8_t>(first & 0x1f)};           // small strings
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
      return {0, power(first - 0xcc)};  // unsigned
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return {0, power(first - 0xd0)};  // signed
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return {0, static_cast<std::uint8_t>(1 + power(first - 0xd4))};
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

constexpr auto layouts = [] {
  std::array<layout, 256> table{};
  for (std::size_t first = 0; first < table.size(); ++first) table[first] = layout_of(static_cast<std::uint8_t>(first));
  return table;
}();

/// Bytes of an unsigned integer, 0 for anything else. Token ids, nearly all of a batch, are quickly stepped over.
std::size_t number_size(std::uint8_t first) {
  if ((first & 0xfc) == 0xcc) return 1 + (std::size_t{1} << (first & 3));
  return first <= 0x7f ? 1 : 0;
}

std::uint64_t big_endian(const std::uint8_t* at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number = number << 8 | at[i];
  return number;
}

/// The end of the value at `at`, or null. Written out here because msgpuck's own check counts in an int, which
/// a forged header of a large map overflows. Once no count can exceed the bytes left, its readers are safe.
const std::uint8_t* end_of_value(const std::uint8_t* at, const std::uint8_t* end) {
  for (std::uint64_t values = 1; values > 0;) {
    --values;
    if (at == end) return nullptr;
    if (const auto size = number_size(*at); size > 0) {
      if (static_cast<std::size_t>(end - at) < size) return nullptr;
      at += size;
      continue;
    }
    const auto found = layouts[*at++];
    if (!found.valid || static_cast<std::size_t>(end - at) < found.length_bytes) return nullptr;
    const auto length = big_endian(at, found.length_bytes);
    at += found.length_bytes;
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

/// The same for a value that has been checked.
const char* after(const char* position) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(position);
  for (std::uint64_t values = 1; values > 0;) {
    --values;
    if (const auto size = number_size(*at); size > 0) {
      at += size;
      continue;
    }
    const auto found = layouts[*at++];
    values += found.values;
    if (found.length_bytes > 0) {
      const auto length = big_endian(at, found.length_bytes);
      at += found.length_bytes + (found.values_each == 0 ? length : 0);
      values += length * found.values_each;
    }
    at += found.content;
  }
  return reinterpret_cast<const char*>(at);
}

}  // namespace

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
  if (mp_typeof(*at) == MP_INT) {
    // Some encoders write positive numbers with a sign.
    const std::int64_t number = mp_decode_int(&at);
    return number >= 0 && static_cast<std::uint64_t>(number) <= max ? std::optional<std::uint64_t>(number)
                                                                    : std::nullopt;
  }
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

std::string_view value::encoded() const { return {at_, static_cast<std::size_t>(after(at_) - at_)}; }

elements::elements(value of) : at_(of.position()) {
  if (of.is_array()) {
    left_ = size_ = mp_decode_array(&at_);
  } else if (of.is_map()) {
    size_ = mp_decode_map(&at_);
    left_ = 2ULL * size_;
  } else {
    unread_ = true;
  }
}

value elements::next() {
  if (unread_) at_ = after(at_);
  unread_ = true;
  --left_;
  return value(at_);
}

const char* elements::end() {
  while (!done()) next();
  if (unread_) at_ = after(at_);
  unread_ = false;
  return at_;
}

bool read_numbers(value list, std::vector<std::uint32_t>& into) {
  if (!list.is_array()) return false;
  const char* position = list.position();
  const auto count = mp_decode_array(&position);
  into.resize(count);
  const auto* at = reinterpret_cast<const std::uint8_t*>(position);
  for (auto& number : into) {
    const auto first = *at;
    if (first <= 0x7f) {
      number = first;
      ++at;
    } else if (first == 0xcd) {
      number = static_cast<std::uint32_t>(big_endian(at + 1, 2));
      at += 3;
    } else if (first == 0xce) {
      number = static_cast<std::uint32_t>(big_endian(at + 1, 4));
      at += 5;
    } else {
      const value other(reinterpret_cast<const char*>(at));
      const auto found = other.integer(std::numeric_limits<std::uint32_t>::max());
      if (!found) return false;
      number = static_cast<std::uint32_t>(*found);
      at += 1 + layouts[first].content;
    }
  }
  return true;
}

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
