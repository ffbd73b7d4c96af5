#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace infernex::monitor {

/// Cuts the first line off `rest`, without its line end.
std::string_view next_line(std::string_view& rest);
std::string_view trimmed(std::string_view text);
/// What stands between blanks; at most 64 words.
std::vector<std::string_view> words_of(std::string_view line);
/// The fields between `separator`, trimmed; at most 64.
std::vector<std::string_view> fields_of(std::string_view line, char separator);
/// A whole text that is a decimal number, e.g. `52`, `92.1`, `-2`; nothing for `NA`, `-`, `47 C`.
std::optional<double> parse_number(std::string_view text);
/// The same for the number a text begins with: `47 C`, `3262.90 mV`.
std::optional<double> parse_leading_number(std::string_view text);
std::optional<std::uint64_t> parse_unsigned(std::string_view text);
/// Hexadecimal, with or without 0x.
std::optional<std::uint64_t> parse_hexadecimal(std::string_view text);

/// `key : value` cut at " : " if there is one, else at the first colon.
struct key_value {
  std::string_view key;
  std::string_view value;
};
std::optional<key_value> parse_key_value(std::string_view line);

}  // namespace infernex::monitor
