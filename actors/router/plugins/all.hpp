#pragma once

// Every plugin of the router, each made in a file of its own; plugin_types() lists them.

#include "actors/router/parameters.hpp"

namespace infernex::router::plugins {

// Ours.
plugin_type overlap_scorer();
plugin_type waiting_scorer();
plugin_type in_flight_scorer();
plugin_type free_kv_scorer();
plugin_type predicted_latency_scorer();

// Pickers.
plugin_type max_score_picker();
plugin_type min_random_picker();
plugin_type random_picker();
plugin_type round_robin_picker();

// Profile handlers and their deciders.
plugin_type single_profile_handler();
plugin_type disaggregated_profile_handler();

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

}  // namespace infernex::router::plugins
