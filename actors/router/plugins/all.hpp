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

}  // namespace infernex::router::plugins
