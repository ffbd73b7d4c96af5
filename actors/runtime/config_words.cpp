#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "actors/runtime/config_tree.hpp"

namespace infernex::config {

namespace {

constexpr std::size_t longest_shown = 120;

constexpr std::array<std::pair<std::string_view, double>, 4> time_units{
    {{"ms", 1.0}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}}};

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 9> size_units{{
    {"TiB", std::uint64_t{1} << 40U},
    {"GiB", std::uint64_t{1} << 30U},
    {"MiB", std::uint64_t{1} << 20U},
    {"KiB", std::uint64_t{1} << 10U},
    {"TB", 1'000'000'000'000},
    {"GB", 1'000'000'000},
    {"MB", 1'000'000},
    {"kB", 1'000},
    {"B", 1},
}};

/// Splits `250ms` into its digits and its unit.
std::pair<std::string_view, std::string_view> split_unit(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  return {text.substr(0, end), text.substr(end)};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text.substr(0, longest_shown));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (text.size() > longest_shown) out += "...";
  return out;
}

std::string quote(std::string_view text) { return '"' + printable(text) + '"'; }

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> real_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> duration(std::string_view text) {
  const auto [digits, unit] = split_unit(text);
  const auto number = real_number(digits);
  if (!number) return std::nullopt;
  double factor = unit.empty() ? 1e3 : 0;
  for (const auto& [name, milliseconds] : time_units)
    if (unit == name) factor = milliseconds;
  const double exact = *number * factor;
  const double rounded = std::round(exact);
  // 1e15 ms are 30,000 years; above, doubles stop telling milliseconds apart.
  if (factor == 0 || rounded > 1e15 || std::abs(exact - rounded) > 1e-6) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(rounded));
}

std::optional<std::uint64_t> byte_size(std::string_view text) {
  const auto [digits, unit] = split_unit(text);
  const auto number = whole_number(digits);
  if (!number) return std::nullopt;
  if (unit.empty()) return number;
  for (const auto& [name, bytes] : size_units) {
    std::uint64_t value = 0;
    if (unit == name) return __builtin_mul_overflow(*number, bytes, &value) ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

std::string render_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string render_duration(std::chrono::milliseconds value) {
  const auto ms = value.count();
  if (ms != 0 && ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms != 0 && ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + "s";
  return std::to_string(ms) + "ms";
}

std::string render_bytes(std::uint64_t value) {
  for (const auto& [name, bytes] : size_units)
    if (name.size() == 3 && value != 0 && value % bytes == 0) return std::to_string(value / bytes) + std::string(name);
  return std::to_string(value) + " bytes";
}

}  // namespace infernex::config
