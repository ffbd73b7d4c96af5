#include "actors/indexer/index_name.hpp"

#include <algorithm>

namespace infernex::indexer {

namespace {

constexpr std::string_view mark = "@tenant:";
constexpr std::size_t max_bytes = 400;

bool usable(std::string_view text) {
  return text.size() <= max_bytes && text.find(mark) == std::string_view::npos &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

std::optional<std::string> index_name(std::string_view model, std::string_view tenant) {
  if (model.empty() || !usable(model) || !usable(tenant)) return std::nullopt;
  std::string name(model);
  if (!tenant.empty() && tenant != default_tenant) (name += mark) += tenant;
  if (name.size() > max_bytes) return std::nullopt;
  return name;
}

tenant_model split_index_name(std::string_view name) {
  const auto at = name.find(mark);
  if (at == std::string_view::npos) return {std::string(name), std::string(default_tenant)};
  return {std::string(name.substr(0, at)), std::string(name.substr(at + mark.size()))};
}

}  // namespace infernex::indexer
