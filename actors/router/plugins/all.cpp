#include "actors/router/plugins/all.hpp"

#include <algorithm>

namespace infernex::router {

const std::vector<plugin_type>& plugin_types() {
  static const std::vector<plugin_type> sorted = [] {
    using namespace plugins;
    std::vector<plugin_type> all{
        // clang-format off
        overlap_scorer(), waiting_scorer(), in_flight_scorer(), free_kv_scorer(), kv_headroom_scorer(),
        predicted_latency_scorer(), decode_room_filter(),
        max_score_picker(), min_random_picker(), random_picker(), round_robin_picker(),
        single_profile_handler(), disaggregated_profile_handler(), least_cost_pair_handler(),
        // NVIDIA Dynamo, SGLang (SMG), Kthena, AIBrix, vLLM production-stack.
        dynamo_cost_scorer(), dynamo_softmax_picker(),
        sglang_cache_aware_picker(), power_of_two_picker(), consistent_hashing_picker(), prefix_hash_picker(),
        least_load_drain_scorer(),
        least_request_filter(), least_request_scorer(), least_latency_scorer(), gpu_usage_scorer(),
        aibrix_prefix_cache_picker(), pd_length_range_filter(), load_aware_prefix_scorer(),
        // Gateway API Inference Extension and llm-d.
        queue_scorer(), running_requests_scorer(), load_aware_scorer(), active_request_scorer(), token_load_scorer(),
        prefix_cache_scorer(), precise_prefix_cache_scorer(), lora_affinity_scorer(), no_hit_lru_scorer(),
        session_affinity_scorer(), context_length_aware(), topology_affinity_scorer(), topology_affinity_filter(),
        session_affinity_filter(), label_selector_filter(), prefill_filter(), decode_filter(), utilization_filter(),
        prefix_cache_affinity_filter(), weighted_random_picker(), always_decider(), prefix_based_decider(),
        header_profile_handler(),
        // openFuyao.
        aggregate_kv_cost_scorer(), pd_kv_cost_scorer(), pd_label_filter(), pd_bucket_scorer(), pd_header_handler(),
        // clang-format on
    };
    for (auto& one : producers()) all.push_back(std::move(one));
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
