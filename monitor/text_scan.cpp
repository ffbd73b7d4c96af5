#include "monitor/text_scan.hpp"

#include <charconv>

namespace infernex::monitor {

namespace {

constexpr std::size_t max_pieces = 64;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

template <class Number>
std::optional<Number> whole_number(std::string_view text, int base) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view next_line(std::string_view& rest) {
  const auto end = rest.find('\n');
  auto line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size() && words.size() < max_pieces;) {
    if (is_blank(line[i])) {
      ++i;
      continue;
    }
    const auto begin = i;
    while (i < line.size() && !is_blank(line[i])) ++i;
    words.push_back(line.substr(begin, i - begin));
  }
  return words;
}

std::vector<std::string_view> fields_of(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  while (fields.size() < max_pieces) {
    const auto end = line.find(separator);
    fields.push_back(trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return fields;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (problem != std::errc{} || end != text.data() + text.size() || value - value != 0) return std::nullopt;
  return value;
}

std::optional<double> parse_leading_number(std::string_view text) {
  text = trimmed(text);
  std::size_t end = 0;
  while (end < text.size() && !is_blank(text[end])) ++end;
  return parse_number(text.substr(0, end));
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) { return whole_number<std::uint64_t>(text, 10); }

std::optional<std::uint64_t> parse_hexadecimal(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return whole_number<std::uint64_t>(text, 16);
}

std::optional<key_value> parse_key_value(std::string_view line) {
  auto at = line.find(" : ");
  std::size_t width = 3;
  if (at == std::string_view::npos) {
    at = line.find(':');
    width = 1;
  }
  if (at == std::string_view::npos) return std::nullopt;
  const auto key = trimmed(line.substr(0, at));
  if (key.empty()) return std::nullopt;
  return key_value{key, trimmed(line.substr(at + width))};
}

}  // namespace infernex::monitor
