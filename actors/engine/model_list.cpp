#include "actors/engine/model_list.hpp"

#include <limits>

#include <boost/json.hpp>

namespace infernex::engine {

namespace {

namespace json = boost::json;

constexpr std::size_t max_adapters = 1024;

const json::string* text_at(const json::object& entry, std::string_view key) {
  const auto* found = entry.if_contains({key.data(), key.size()});
  return found ? found->if_string() : nullptr;
}

std::optional<std::uint32_t> length_at(const json::object& entry) {
  const auto* found = entry.if_contains("max_model_len");
  const auto* number = found ? found->if_int64() : nullptr;
  if (!number || *number <= 0 || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

result<model_list> read_model_list(std::string_view body, std::string_view wanted) {
  boost::system::error_code problem;
  const auto answer = json::parse({body.data(), body.size()}, problem);
  if (problem) return error{errc::malformed_input, "/v1/models: " + problem.message()};
  const auto* root = answer.if_object();
  const auto* data = root ? root->if_contains("data") : nullptr;
  const auto* entries = data ? data->if_array() : nullptr;
  if (!entries) return error{errc::malformed_input, "/v1/models: no list \"data\""};
  model_list list;
  for (const auto& item : *entries) {
    const auto* entry = item.if_object();
    const auto* id = entry ? text_at(*entry, "id") : nullptr;
    if (!id || id->empty()) continue;
    const std::string_view name(id->data(), id->size());
    if (text_at(*entry, "parent") != nullptr) {
      if (list.adapters.size() < max_adapters) list.adapters.emplace_back(name);
    } else if (list.model.empty() && (wanted.empty() || wanted == name)) {
      list.model = name;
      list.max_model_len = length_at(*entry);
    }
  }
  if (list.model.empty())
    return error{errc::not_found,
                 "/v1/models: " + (wanted.empty() ? "no base model" : "no model " + std::string(wanted))};
  return list;
}

}  // namespace infernex::engine
