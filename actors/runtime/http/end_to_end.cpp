#include "actors/runtime/http/end_to_end.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace infernex::http {
namespace {

constexpr std::array<std::string_view, 9> hop_by_hop = {
    "connection",        "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade"};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

namespace {

template <class Names>
bool is_in(std::string_view name, const Names& names) {
  return std::any_of(names.begin(), names.end(), [name](std::string_view n) { return same_name(name, n); });
}

/// Headers that a Connection header declares to be for this hop.
std::vector<std::string_view> declared_hop_by_hop(const fields& headers) {
  std::vector<std::string_view> names;
  for (const auto& field : headers) {
    if (!same_name(field.name, "connection")) continue;
    std::string_view list = field.value;
    while (!list.empty()) {
      auto item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(item.size() + 1, list.size()));
      item.remove_prefix(std::min(item.find_first_not_of(" \t"), item.size()));
      item = item.substr(0, item.find_last_not_of(" \t") + 1);
      if (!item.empty()) names.push_back(item);
    }
  }
  return names;
}

}  // namespace

fields end_to_end(const fields& headers, std::span<const std::string_view> others) {
  const auto declared = declared_hop_by_hop(headers);
  fields kept;
  kept.reserve(headers.size() + 3);
  for (const auto& field : headers) {
    if (!is_in(field.name, hop_by_hop) && !is_in(field.name, others) && !is_in(field.name, declared)) {
      kept.push_back(field);
    }
  }
  return kept;
}

}  // namespace infernex::http
