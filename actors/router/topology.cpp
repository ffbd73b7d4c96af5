#include "actors/router/topology.hpp"

#include <algorithm>

namespace infernex::router {

bool adapter_use::runs(std::string_view adapter) const {
  return std::binary_search(running.begin(), running.end(), adapter);
}

bool adapter_use::awaits(std::string_view adapter) const {
  return std::binary_search(waiting.begin(), waiting.end(), adapter);
}

std::string_view endpoint::label(std::string_view key) const {
  const auto at = std::lower_bound(labels.begin(), labels.end(), key,
                                   [](const auto& one, std::string_view wanted) { return one.first < wanted; });
  return at == labels.end() || at->first != key ? std::string_view{} : at->second;
}

std::string_view endpoint::address() const {
  std::string_view rest = url;
  if (const auto scheme = rest.find("://"); scheme != rest.npos) rest.remove_prefix(scheme + 3);
  return rest.substr(0, rest.find('/'));
}

std::optional<std::uint32_t> model_endpoints::block_size() const {
  std::optional<std::uint32_t> smallest;
  for (const auto& e : endpoints)
    if (e.block_size && *e.block_size > 0 && (!smallest || *e.block_size < *smallest)) smallest = e.block_size;
  return smallest;
}

std::size_t model_endpoints::ready_count() const {
  return static_cast<std::size_t>(
      std::count_if(endpoints.begin(), endpoints.end(), [](const endpoint& e) { return e.ready(); }));
}

const endpoint* model_endpoints::find(std::string_view instance) const {
  const auto at = std::lower_bound(endpoints.begin(), endpoints.end(), instance,
                                   [](const endpoint& e, std::string_view name) { return e.instance < name; });
  return at == endpoints.end() || at->instance != instance ? nullptr : &*at;
}

const model_endpoints* topology::find(std::string_view model_or_adapter) const {
  if (const auto it = models.find(model_or_adapter); it != models.end()) return &it->second;
  for (const auto& [name, of] : models)
    for (const auto& e : of.endpoints)
      if (std::find(e.adapters.begin(), e.adapters.end(), model_or_adapter) != e.adapters.end()) return &of;
  return nullptr;
}

}  // namespace infernex::router
