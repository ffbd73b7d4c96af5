#include "actors/router/plugins/all.hpp"

#include <algorithm>

namespace infernex::router {

const std::vector<plugin_type>& plugin_types() {
  static const std::vector<plugin_type> sorted = [] {
    using namespace plugins;
    std::vector<plugin_type> all{
        // clang-format off
        overlap_scorer(), waiting_scorer(), in_flight_scorer(), free_kv_scorer(),
        predicted_latency_scorer(),
        max_score_picker(), min_random_picker(), random_picker(), round_robin_picker(),
        single_profile_handler(), disaggregated_profile_handler(),
        // clang-format on
    };
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return sorted;
}

const plugin_type* find_plugin_type(std::string_view name) {
  for (const auto& type : plugin_types())
    if (type.name == name || std::find(type.aliases.begin(), type.aliases.end(), name) != type.aliases.end())
      return &type;
  return nullptr;
}

}  // namespace infernex::router
