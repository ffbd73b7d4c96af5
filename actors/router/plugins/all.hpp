#pragma once

// Every plugin of the router, each made in a file of its own; plugin_types() lists them.

#include "actors/router/parameters.hpp"

namespace infernex::router::plugins {

// Ours.
plugin_type overlap_scorer();
plugin_type waiting_scorer();
plugin_type in_flight_scorer();
plugin_type free_kv_scorer();
plugin_type kv_headroom_scorer();
plugin_type decode_room_filter();
plugin_type predicted_latency_scorer();

// Pickers.
plugin_type max_score_picker();
plugin_type min_random_picker();
plugin_type random_picker();
plugin_type round_robin_picker();

// Profile handlers and their deciders.
plugin_type single_profile_handler();
plugin_type disaggregated_profile_handler();
plugin_type least_cost_pair_handler();

// NVIDIA Dynamo, SGLang (SMG), Kthena, AIBrix, vLLM production-stack.
plugin_type dynamo_cost_scorer();
plugin_type dynamo_softmax_picker();
plugin_type sglang_cache_aware_picker();
plugin_type power_of_two_picker();
plugin_type consistent_hashing_picker();
plugin_type prefix_hash_picker();
plugin_type least_load_drain_scorer();
plugin_type least_request_filter();
plugin_type least_request_scorer();
plugin_type least_latency_scorer();
plugin_type gpu_usage_scorer();
plugin_type aibrix_prefix_cache_picker();
plugin_type pd_length_range_filter();
plugin_type load_aware_prefix_scorer();
// Gateway API Inference Extension and llm-d.
plugin_type queue_scorer();
plugin_type running_requests_scorer();
plugin_type load_aware_scorer();
plugin_type active_request_scorer();
plugin_type token_load_scorer();
plugin_type prefix_cache_scorer();
plugin_type precise_prefix_cache_scorer();
plugin_type lora_affinity_scorer();
plugin_type no_hit_lru_scorer();
plugin_type session_affinity_scorer();
plugin_type context_length_aware();
plugin_type topology_affinity_scorer();
plugin_type topology_affinity_filter();
plugin_type session_affinity_filter();
plugin_type label_selector_filter();
plugin_type prefill_filter();
plugin_type decode_filter();
plugin_type utilization_filter();
plugin_type prefix_cache_affinity_filter();
plugin_type weighted_random_picker();
plugin_type always_decider();
plugin_type prefix_based_decider();
plugin_type header_profile_handler();
std::vector<plugin_type> producers();

// openFuyao.
plugin_type aggregate_kv_cost_scorer();
plugin_type pd_kv_cost_scorer();
plugin_type pd_label_filter();
plugin_type pd_bucket_scorer();
plugin_type pd_header_handler();

}  // namespace infernex::router::plugins
