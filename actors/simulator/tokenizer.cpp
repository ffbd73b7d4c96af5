#include "actors/simulator/tokenizer.hpp"

#include <cstddef>

namespace infernex::simulator {

namespace {

// Ids: one byte, two bytes, three bytes (each big-endian after its offset), then code points of four bytes.
constexpr token_id two_bytes = 0x100;
constexpr token_id three_bytes = two_bytes + 0x1'0000;
constexpr token_id code_points = three_bytes + 0x100'0000;
constexpr token_id end_of_code_points = code_points + 0x11'0000;
static_assert(end_of_code_points <= eos_token);

/// Bytes of the code point at the start of `text`; 0 if it is not valid UTF-8 (Unicode 15, table 3-7).
std::size_t code_point_bytes(std::string_view text) {
  const auto at = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (length == 0 || text.size() < length || at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xBF) return 0;
  }
  return length;
}

token_id id_of(std::string_view bytes) {
  token_id value = 0;
  if (bytes.size() == 4) {
    value = static_cast<unsigned char>(bytes[0]) & 0x07U;
    for (char c : bytes.substr(1)) value = value << 6 | (static_cast<unsigned char>(c) & 0x3FU);
    return code_points + value;
  }
  for (char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value + (bytes.size() == 1 ? 0 : bytes.size() == 2 ? two_bytes : three_bytes);
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto length = code_point_bytes(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

}  // namespace

result<std::vector<token_id>> encode(std::string_view text) {
  std::vector<token_id> tokens;
  tokens.reserve(text.size() / 2 + 1);
  std::size_t start = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    const auto length = code_point_bytes(text.substr(end));
    if (length == 0) return error{errc::invalid_request, "not valid UTF-8 at byte " + std::to_string(end)};
    if (end > start && (text[end] == ' ' || end + length - start > 3)) {
      tokens.push_back(id_of(text.substr(start, end - start)));
      start = end;
    }
    end += length;
  }
  if (end > start) tokens.push_back(id_of(text.substr(start)));
  return tokens;
}

bool append_text(token_id token, std::string& text) {
  char bytes[4];
  std::size_t size = 0;
  if (token < three_bytes + 0x100'0000) {
    size = token < two_bytes ? 1 : token < three_bytes ? 2 : 3;
    const token_id value = token - (size == 1 ? 0 : size == 2 ? two_bytes : three_bytes);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(value >> (8 * (size - 1 - i)));
  } else if (token >= code_points + 0x1'0000 && token < end_of_code_points) {
    const token_id value = token - code_points;
    size = 4;
    bytes[0] = static_cast<char>(0xF0 | value >> 18);
    bytes[1] = static_cast<char>(0x80 | (value >> 12 & 0x3F));
    bytes[2] = static_cast<char>(0x80 | (value >> 6 & 0x3F));
    bytes[3] = static_cast<char>(0x80 | (value & 0x3F));
  } else {
    return false;
  }
  if (!is_text({bytes, size})) return false;
  text.append(bytes, size);
  return true;
}

result<std::string> decode(std::span<const token_id> tokens) {
  std::string text;
  for (token_id token : tokens) {
    if (token != eos_token && !append_text(token, text)) {
      return error{errc::invalid_request, "no such token: " + std::to_string(token)};
    }
  }
  return text;
}

}  // namespace infernex::simulator
