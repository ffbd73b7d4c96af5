#include "diagnosis/knowledge.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace infernex::diagnosis {

const level_advice* code_table::find_level(std::string_view name) const {
  const auto found = std::ranges::find(levels, name, &level_advice::level);
  return found == levels.end() ? nullptr : &*found;
}

const level_advice* code_table::advice_of(std::uint64_t code) const {
  const auto found = level_of.find(code);
  return found == level_of.end() ? nullptr : &levels[found->second];
}

std::string_view code_table::text(std::uint64_t code) const {
  const auto found = text_of.find(code);
  return found == text_of.end() ? std::string_view{} : std::string_view{found->second};
}

const rule* knowledge::find(std::string_view id) const {
  const auto found = std::ranges::find(rules, id, &rule::id);
  return found == rules.end() ? nullptr : &*found;
}

std::string render_ascend_code(std::uint64_t code) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), code, 16).ptr;
  std::string text(digits.data(), end);
  for (auto& c : text)
    if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string_view name(severity grade) {
  constexpr std::array<std::string_view, 5> names{"unknown", "info", "warning", "major", "critical"};
  return names[std::min<std::size_t>(static_cast<std::size_t>(grade), names.size() - 1)];
}

std::string_view name(action act) {
  constexpr std::array<std::string_view, 4> names{"ok", "watch", "degrade", "isolate"};
  return names[std::min<std::size_t>(static_cast<std::size_t>(act), names.size() - 1)];
}

}  // namespace infernex::diagnosis
