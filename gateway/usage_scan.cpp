#include "gateway/usage_scan.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <simdjson.h>

namespace infernex::gateway {
namespace {

namespace od = simdjson::ondemand;

void read_count(od::object& from, std::string_view name, std::optional<std::uint32_t>& to) {
  std::uint64_t value = 0;
  if (from.find_field_unordered(name).get_uint64().get(value) == simdjson::SUCCESS) {
    to = static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
  }
}

/// Behind the end of the last whole event of `bytes`, or npos. Events end in an empty line.
std::size_t end_of_last_event(std::string_view bytes) {
  const auto unix_end = bytes.rfind("\n\n");
  const auto network_end = bytes.rfind("\r\n\r\n");
  std::size_t end = std::string_view::npos;
  if (unix_end != std::string_view::npos) end = unix_end + 2;
  if (network_end != std::string_view::npos && (end == std::string_view::npos || network_end + 4 > end)) {
    end = network_end + 4;
  }
  return end;
}

std::size_t skip_spaces(std::string_view in, std::size_t at) {
  while (at < in.size() && in[at] == ' ') ++at;
  return at;
}

/// Whether `"name":` is followed by a value that starts with `first` and goes on with something else than
/// `not_then`. A quote inside a JSON string is escaped, so the pattern cannot come from generated text.
bool has_value(std::string_view in, std::string_view name, char first, char not_then) {
  for (auto at = in.find(name); at != std::string_view::npos; at = in.find(name, at + 1)) {
    const auto value = skip_spaces(in, at + name.size());
    if (value + 1 < in.size() && in[value] == first && in[value + 1] != not_then) return true;
  }
  return false;
}

bool carries_output(std::string_view events) {
  struct sign {
    std::string_view name;
    char first;
    char not_then;
  };
  static constexpr std::array<sign, 6> signs = {{{"\"content\":", '"', '"'},
                                                 {"\"text\":", '"', '"'},
                                                 {"\"reasoning_content\":", '"', '"'},
                                                 {"\"reasoning\":", '"', '"'},
                                                 {"\"tool_calls\":", '[', ']'},
                                                 {"\"finish_reason\":", '"', '"'}}};
  return std::any_of(signs.begin(), signs.end(),
                     [&](const sign& s) { return has_value(events, s.name, s.first, s.not_then); });
}

/// The JSON of the event around `at`: from behind its `data:` to the end of the line.
std::string_view event_around(std::string_view events, std::size_t at) {
  const auto before = events.rfind('\n', at);
  const auto begin = before == std::string_view::npos ? 0 : before + 1;
  auto json = events.substr(begin, events.find('\n', at) - begin);
  constexpr std::string_view prefix = "data:";
  if (json.substr(0, prefix.size()) == prefix) json.remove_prefix(prefix.size());
  return json;
}

}  // namespace

usage find_usage(std::string_view json) {
  usage found;
  const simdjson::padded_string padded(json);
  od::parser parser;
  od::document document;
  od::object object;
  if (parser.iterate(padded).get(document) || document.find_field_unordered("usage").get_object().get(object)) {
    return found;
  }
  read_count(object, "prompt_tokens", found.prompt_tokens);
  // Text that turns out to be no JSON ends the document; what was read from it must not be asked again.
  if (document.is_alive()) read_count(object, "completion_tokens", found.completion_tokens);
  od::object details;
  if (document.is_alive() &&
      object.find_field_unordered("prompt_tokens_details").get_object().get(details) == simdjson::SUCCESS) {
    read_count(details, "cached_tokens", found.cached_tokens);
  }
  return found;
}

std::string_view stream_scan::feed(std::string_view piece) {
  const bool joined = !held_.empty();
  if (joined) {
    joined_.assign(held_).append(piece);
    held_.clear();
    piece = joined_;
  }
  auto end = end_of_last_event(piece);
  if (end == std::string_view::npos) end = 0;
  if (piece.size() - end > max_held_) end = piece.size();
  held_.assign(piece.substr(end));
  const auto released = piece.substr(0, end);
  if (!released.empty()) look(released);
  return released;
}

void stream_scan::look(std::string_view events) {
  if (!first_token_) first_token_ = carries_output(events);
  constexpr std::string_view mark = "\"usage\":";
  // The last one that is an object: engines also say null, before and after.
  for (auto at = events.rfind(mark); at != std::string_view::npos; at = at == 0 ? at - 1 : events.rfind(mark, at - 1)) {
    const auto value = skip_spaces(events, at + mark.size());
    if (value == events.size() || events[value] != '{') continue;
    usage_event_.assign(event_around(events, at).substr(0, max_held_));
    break;
  }
  if (!done_)
    done_ =
        events.find("data: [DONE]") != std::string_view::npos || events.find("data:[DONE]") != std::string_view::npos;
}

usage stream_scan::last_usage() const { return usage_event_.empty() ? usage{} : find_usage(usage_event_); }

}  // namespace infernex::gateway
