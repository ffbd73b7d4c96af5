#include "actors/engine/prometheus_text.hpp"

#include <charconv>

namespace infernex::engine {

namespace {

constexpr std::string_view blanks = " \t";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin);
}

bool is_name(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':'))
      return false;
  return true;
}

/// Where the quoted string that begins at `at` ends (its closing quote).
std::size_t closing_quote(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at;
  }
  return std::string_view::npos;
}

/// Where the label set that begins at the opening brace ends (its closing brace).
std::size_t closing_brace(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '}') return at;
    if (text[at] == '"') {
      at = closing_quote(text, at);
      if (at == std::string_view::npos) return at;
    }
  }
  return std::string_view::npos;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size())
      plain += text[i];
    else if (text[++i] == 'n')
      plain += '\n';
    else
      plain += text[i];
  }
  return plain;
}

}  // namespace

std::optional<prometheus_sample> parse_sample(std::string_view line) {
  prometheus_sample sample;
  const auto name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos) return std::nullopt;
  sample.metric = line.substr(0, name_end);
  if (!is_name(sample.metric)) return std::nullopt;
  auto rest = trimmed(line.substr(name_end));
  if (rest.starts_with('{')) {
    const auto end = closing_brace(rest, 0);
    if (end == std::string_view::npos) return std::nullopt;
    sample.labels = rest.substr(1, end - 1);
    rest = trimmed(rest.substr(end + 1));
  }
  rest = rest.substr(0, rest.find_first_of(blanks));  // a timestamp may follow
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), sample.value);
  if (rest.empty() || problem != std::errc{} || end != rest.data() + rest.size()) return std::nullopt;
  return sample;
}

std::optional<std::string> find_label(std::string_view labels, std::string_view name) {
  while (true) {
    labels = trimmed(labels);
    const auto equals = labels.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    auto key = labels.substr(0, equals);
    key = key.substr(0, key.find_last_not_of(blanks) + 1);
    const auto quote = labels.find_first_not_of(blanks, equals + 1);
    if (quote == std::string_view::npos || labels[quote] != '"') return std::nullopt;
    const auto end = closing_quote(labels, quote);
    if (end == std::string_view::npos) return std::nullopt;
    if (key == name) return unescaped(labels.substr(quote + 1, end - quote - 1));
    const auto comma = labels.find(',', end);
    if (comma == std::string_view::npos) return std::nullopt;
    labels.remove_prefix(comma + 1);
  }
}

}  // namespace infernex::engine
