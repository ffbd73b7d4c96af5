#include <charconv>
#include <cmath>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "actors/runtime/config_tree.hpp"

namespace infernex::config {

namespace json = boost::json;

namespace {

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

json::value scalar_of(const node& from) {
  const auto& text = from.text;
  if (!from.quoted) {
    if (text == "true" || text == "false") return text == "true";
    if (const auto whole = number_of<std::int64_t>(text)) return *whole;
    if (const auto large = number_of<std::uint64_t>(text)) return *large;
    // Not a letter first: `infinity` and `nan` are words here.
    if (text.find_first_of("0123456789") <= 2)
      if (const auto real = number_of<double>(text); real && std::isfinite(*real)) return *real;
  }
  return json::value(json::string(text));
}

/// The entry whose key `path` begins with; the longest, since keys may hold dots.
const entry* step_into(const node& mapping, std::string_view path) {
  const entry* found = nullptr;
  for (const auto& e : mapping.entries) {
    if (!path.starts_with(e.key) || (found != nullptr && found->key.size() >= e.key.size())) continue;
    if (path.size() == e.key.size() || path[e.key.size()] == '.' || path[e.key.size()] == '[') found = &e;
  }
  return found;
}

bool is_container(const node& n) { return n.what == node::kind::list || n.what == node::kind::mapping; }

}  // namespace

json::value json_of(const node& from) {
  switch (from.what) {
    case node::kind::scalar:
      return scalar_of(from);
    case node::kind::list: {
      json::array out;
      for (const auto* item : from.items) out.push_back(json_of(*item));
      return out;
    }
    case node::kind::mapping: {
      json::object out;
      for (const auto& e : from.entries) out.emplace(e.key, json_of(*e.value));
      return out;
    }
    case node::kind::null:
    case node::kind::unusable:
      return nullptr;
  }
  return nullptr;
}

position position_of(const node* from, position at, std::string_view path) {
  while (from != nullptr && !path.empty()) {
    if (path.front() == '[') {
      const auto close = path.find(']');
      const auto index = number_of<std::size_t>(path.substr(1, close == path.npos ? close : close - 1));
      if (from->what != node::kind::list || !index || *index >= from->items.size()) return at;
      from = from->items[*index];
      at = from->at;
      path.remove_prefix(close + 1);
    } else {
      if (path.front() == '.') path.remove_prefix(1);
      const auto* next = from->what == node::kind::mapping ? step_into(*from, path) : nullptr;
      if (next == nullptr) return at;
      path.remove_prefix(next->key.size());
      from = next->value;
      at = is_container(*from) ? next->at : from->at;
    }
  }
  return at;
}

}  // namespace infernex::config
