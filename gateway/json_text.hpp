#pragma once

#include <string>
#include <string_view>

namespace infernex::gateway {

/// `text` as a JSON string, quotes included.
inline std::string json_text(std::string_view text) {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (byte < 0x20) {
      ((out += "\\u00") += hex[byte >> 4]) += hex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace infernex::gateway
