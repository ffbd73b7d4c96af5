#include "actors/indexer/dump.hpp"

#include <charconv>
#include <cstdio>

#include <boost/json.hpp>

#include "actors/indexer/index_name.hpp"

namespace infernex::indexer {

namespace {

std::string quoted(std::string_view text) {
  return boost::json::serialize(boost::json::string(text.data(), text.size()));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Nothing: a percent sign that two hex digits do not follow.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// What stands before the first `at`, and what after it.
std::pair<std::string_view, std::string_view> cut(std::string_view text, char at) {
  const auto i = text.find(at);
  if (i == std::string_view::npos) return {text, {}};
  return {text.substr(0, i), text.substr(i + 1)};
}

refusal wrong(std::string_view parameter, std::string_view why) {
  return {400, std::string(parameter) + ": " + std::string(why), {}, std::string(parameter)};
}

}  // namespace

std::optional<refusal> read_dump_question(std::string_view target, dump_question& into) {
  auto query = cut(target, '?').second;
  while (!query.empty()) {
    const auto [pair, rest] = cut(query, '&');
    query = rest;
    const auto [name, raw] = cut(pair, '=');
    auto value = unescaped(raw);
    if (!value) return wrong(name, "a percent sign stands before two hex digits");
    if (name == "model") {
      into.model = *std::move(value);
    } else if (name == "tenant" || name == "tenant_id") {
      into.tenant = *std::move(value);
    } else if (name == "instance") {
      into.instance = *std::move(value);
    } else if (name == "limit") {
      const auto* last = value->data() + value->size();
      const auto [at, problem] = std::from_chars(value->data(), last, into.limit);
      if (problem != std::errc{} || at != last || into.limit == 0)
        return wrong("limit", "a number of keys, at least 1");
    } else {
      return wrong(name, "not a parameter of /dump: model, tenant, instance, limit are");
    }
  }
  if (into.model.empty()) return wrong("model", "is required");
  auto index = index_name(into.model, into.tenant);
  if (!index) return wrong("model", "with this tenant, not a pair of names that can be indexed");
  into.index = *std::move(index);
  return std::nullopt;
}

dump_text::dump_text(const dump_question& about) : about_(about), left_(about.limit) {}

std::string dump_text::head() const {
  return "{\"model\":" + quoted(about_.model) +
         ",\"tenant\":" + quoted(about_.tenant.empty() ? default_tenant : std::string_view(about_.tenant)) +
         ",\"instances\":[";
}

std::string dump_text::begin_instance(std::string_view instance) {
  first_key_ = true;
  return (std::exchange(first_instance_, false) ? "" : ",") + ("{\"instance\":" + quoted(instance)) + ",\"keys\":[";
}

std::string dump_text::keys(const std::vector<block_key>& some) {
  std::string out;
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(some.size(), left_));
  left_ -= taken;
  cut_ = cut_ || taken < some.size();
  out.reserve(taken * 19);
  for (std::size_t i = 0; i < taken; ++i) {
    char digits[24];
    std::snprintf(digits, sizeof digits, "%s\"%016llx\"", first_key_ ? "" : ",",
                  static_cast<unsigned long long>(some[i]));
    first_key_ = false;
    out += digits;
  }
  return out;
}

std::string dump_text::tail() const {
  return "],\"keys\":" + std::to_string(about_.limit - left_) + ",\"complete\":" + (cut_ ? "false" : "true") + "}";
}

}  // namespace infernex::indexer
