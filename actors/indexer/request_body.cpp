#include "actors/indexer/request_body.hpp"

#include <charconv>

#include <boost/json/parse.hpp>

namespace infernex::indexer {

namespace json = boost::json;

namespace {

std::optional<std::uint64_t> unsigned_of(const json::value& v) {
  if (v.is_uint64()) return v.get_uint64();
  if (v.is_int64() && v.get_int64() >= 0) return static_cast<std::uint64_t>(v.get_int64());
  return std::nullopt;
}

std::optional<std::uint64_t> hash_of(const json::value& v) {
  if (!v.is_string()) return unsigned_of(v);
  std::string_view text(v.get_string().data(), v.get_string().size());
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t hash = 0;
  if (text.empty() || text.size() > 16) return std::nullopt;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return hash;
}

}  // namespace

request_body::request_body(std::string_view text) {
  boost::system::error_code problem;
  auto parsed = json::parse({text.data(), text.size()}, problem);
  if (problem)
    mistake_ = refusal{400, "the body is not JSON: " + problem.message(), "invalid_json", {}};
  else if (!parsed.is_object())
    mistake_ = refusal{400, "the body has to be a JSON object", "invalid_json", {}};
  else
    fields_ = std::move(parsed.get_object());
}

void request_body::complain(std::string_view field, std::string message) {
  if (!mistake_) mistake_ = refusal{400, std::string(field) + ": " + std::move(message), {}, std::string(field)};
}

const json::value* request_body::find(std::string_view field) const {
  const auto* found = fields_.if_contains({field.data(), field.size()});
  return found && !found->is_null() ? found : nullptr;
}

bool request_body::has(std::string_view field) const { return find(field) != nullptr; }

std::string request_body::text(std::string_view field) {
  const auto* found = find(field);
  if (!found) return {};
  if (const auto* string = found->if_string()) return std::string(string->data(), string->size());
  complain(field, "text is wanted");
  return {};
}

std::string request_body::required_text(std::string_view field) {
  auto found = text(field);
  if (found.empty()) complain(field, "is required");
  return found;
}

std::optional<std::uint32_t> request_body::number(std::string_view field, std::uint32_t least, std::uint32_t most) {
  const auto* found = find(field);
  if (!found) return std::nullopt;
  if (const auto number = unsigned_of(*found); number && *number >= least && *number <= most)
    return static_cast<std::uint32_t>(*number);
  complain(field, "a number from " + std::to_string(least) + " to " + std::to_string(most) + " is wanted");
  return std::nullopt;
}

bool request_body::flag(std::string_view field) {
  const auto* found = find(field);
  if (!found) return false;
  if (const auto* set = found->if_bool()) return *set;
  complain(field, "true or false is wanted");
  return false;
}

std::vector<std::uint32_t> request_body::tokens(std::string_view field) {
  std::vector<std::uint32_t> ids;
  const auto* found = find(field);
  if (!found) return ids;
  const auto* list = found->if_array();
  if (!list) {
    complain(field, "a list of token ids is wanted");
    return ids;
  }
  ids.reserve(list->size());
  for (const auto& one : *list) {
    const auto id = unsigned_of(one);
    if (!id || *id > std::numeric_limits<std::uint32_t>::max()) {
      complain(field, "entry " + std::to_string(ids.size()) + " is not a token id");
      return {};
    }
    ids.push_back(static_cast<std::uint32_t>(*id));
  }
  return ids;
}

bool request_body::read_hashes(const json::array& from, std::string_view field, std::vector<std::uint64_t>& into) {
  into.reserve(from.size());
  for (const auto& one : from) {
    const auto hash = hash_of(one);
    if (!hash) {
      complain(field, "entry " + std::to_string(into.size()) + " is not a 64-bit number or its hex digits");
      return false;
    }
    into.push_back(*hash);
  }
  return true;
}

std::vector<std::uint64_t> request_body::hashes(std::string_view field) {
  std::vector<std::uint64_t> read;
  const auto* found = find(field);
  if (!found) return read;
  if (const auto* list = found->if_array()) {
    if (!read_hashes(*list, field, read)) read.clear();
  } else {
    complain(field, "a list of hashes is wanted");
  }
  return read;
}

request_body::hash_lists request_body::lists_of_hashes(std::string_view field, std::size_t max_lists) {
  hash_lists read;
  const auto* found = find(field);
  if (!found) return read;
  const auto* list = found->if_array();
  if (!list) {
    complain(field, "a list of hashes, or of such lists, is wanted");
    return read;
  }
  read.several = !list->empty() && list->front().is_array();
  if (!read.several) {
    read.lists.push_back(hashes(field));
    return read;
  }
  if (list->size() > max_lists) {
    complain(field, "at most " + std::to_string(max_lists) + " lists");
    return read;
  }
  for (const auto& one : *list) {
    const auto* inner = one.if_array();
    if (!inner) {
      complain(field, "either every entry is a list or none");
      return {};
    }
    if (!read_hashes(*inner, field, read.lists.emplace_back())) return {};
  }
  return read;
}

}  // namespace infernex::indexer
