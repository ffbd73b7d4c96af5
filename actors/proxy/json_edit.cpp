#include <vector>

#include "actors/proxy/json_scan.hpp"

namespace infernex::proxy {
namespace {

std::optional<std::vector<std::string_view>> elements_of(std::string_view array) {
  element_cursor walk(array);
  std::vector<std::string_view> items;
  for (std::string_view item; walk.next(item);) items.push_back(item);
  if (!walk.complete()) return std::nullopt;
  return items;
}

std::string joined(const std::vector<std::string_view>& items) {
  std::string out = "[";
  for (const auto item : items) {
    if (out.size() > 1) out += ',';
    out += item;
  }
  return out += ']';
}

}  // namespace

std::optional<std::string> edited(std::string_view object, std::span<const json_edit> edits) {
  std::string out = "{";
  std::vector<bool> done(edits.size());
  const auto add = [&out](std::string_view raw_name, std::string_view value) {
    if (out.size() > 1) out += ',';
    ((((out += '"') += raw_name) += '"') += ':') += value;
  };
  out.reserve(object.size() + 256);
  member_cursor walk(object);
  for (json_member m; walk.next(m);) {
    std::size_t which = 0;
    while (which < edits.size() && !m.is(edits[which].name)) ++which;
    if (which == edits.size()) {
      add(m.raw_name, m.value);
    } else if (edits[which].value && !done[which]) {
      add(m.raw_name, *edits[which].value);
    }
    if (which < edits.size()) done[which] = true;
  }
  if (!walk.complete()) return std::nullopt;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (!done[i] && edits[i].value) add(edits[i].name, *edits[i].value);
  }
  return out += '}';
}

std::optional<std::string> with_first(std::string_view array, std::string_view element) {
  auto items = elements_of(array);
  if (!items || items->empty()) return std::nullopt;
  items->front() = element;
  return joined(*items);
}

std::optional<std::string> with_last(std::string_view array, std::string_view element) {
  auto items = elements_of(array);
  if (!items || items->empty()) return std::nullopt;
  items->back() = element;
  return joined(*items);
}

std::optional<std::string> with_appended(std::string_view array, std::string_view element) {
  auto items = elements_of(array);
  if (!items) return std::nullopt;
  items->push_back(element);
  return joined(*items);
}

}  // namespace infernex::proxy
