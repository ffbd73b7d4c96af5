#include "actors/simulator/json_fields.hpp"

#include <cmath>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace infernex::simulator {

namespace json = boost::json;

namespace {

std::string_view kind_name(json::kind kind) {
  switch (kind) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
      return "an integer";
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "something else";
}

std::string view(json::string_view text) { return {text.data(), text.size()}; }

}  // namespace

const json::value* json_fields::find(std::string_view name) const {
  const auto* found = body_.if_contains({name.data(), name.size()});
  return found && !found->is_null() ? found : nullptr;
}

std::optional<bool> json_fields::boolean(std::string_view name) {
  const auto* value = find(name);
  if (!value) return std::nullopt;
  if (const auto* got = value->if_bool()) return *got;
  refuse_type(name, "a boolean", *value);
  return std::nullopt;
}

std::optional<std::uint64_t> json_fields::integer(std::string_view name, std::uint64_t least, std::uint64_t most) {
  const auto* value = find(name);
  if (!value) return std::nullopt;
  std::optional<std::uint64_t> got;
  bool negative = false;
  if (const auto* unsigned_value = value->if_uint64()) {
    got = *unsigned_value;
  } else if (const auto* signed_value = value->if_int64()) {
    negative = *signed_value < 0;
    got = static_cast<std::uint64_t>(*signed_value);
  } else if (const auto* real = value->if_double(); real && *real == std::floor(*real) && std::abs(*real) < 0x1p53) {
    // 16.0 is an integer to vLLM, too.
    negative = *real < 0;
    got = negative ? 0 : static_cast<std::uint64_t>(*real);
  }
  if (!got) {
    refuse_type(name, "an integer", *value);
    return std::nullopt;
  }
  if (negative || *got < least || *got > most) {
    refuse(name, std::string(name) + " must be " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                     json::serialize(*value) + ".");
    return std::nullopt;
  }
  return got;
}

std::optional<double> json_fields::number(std::string_view name, double least, double most) {
  const auto* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) {
    refuse_type(name, "a number", *value);
    return std::nullopt;
  }
  const auto got = value->to_number<double>();
  if (got >= least && got <= most) return got;
  refuse(name, std::string(name) + " is out of its range: " + json::serialize(*value) + ".");
  return std::nullopt;
}

std::optional<std::string> json_fields::text(std::string_view name) {
  const auto* value = find(name);
  if (!value) return std::nullopt;
  if (const auto* got = value->if_string()) return view(*got);
  refuse_type(name, "a string", *value);
  return std::nullopt;
}

std::vector<std::string> json_fields::texts(std::string_view name, std::size_t most) {
  const auto* value = find(name);
  if (!value) return {};
  if (const auto* one = value->if_string()) return {view(*one)};
  const auto* list = value->if_array();
  if (!list) {
    refuse_type(name, "a string or a list of strings", *value);
    return {};
  }
  if (list->size() > most) refuse(name, std::string(name) + " holds more than " + std::to_string(most) + " strings.");
  std::vector<std::string> got;
  for (const auto& entry : *list) {
    const auto* one = entry.if_string();
    if (!one) {
      refuse_type(name, "a list of strings", entry);
      return {};
    }
    got.push_back(view(*one));
  }
  return got;
}

void json_fields::refuse(std::string_view name, std::string message, unsigned status) {
  if (!problem_) problem_ = refusal{status, std::move(message), std::string(name)};
}

void json_fields::refuse_type(std::string_view name, std::string_view expected, const json::value& got) {
  refuse(name, std::string(name) + ": expected " + std::string(expected) + ", got " +
                   std::string(kind_name(got.kind())) + ".");
}

}  // namespace infernex::simulator
