#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/router/request_terms.hpp"
#include "actors/router/scheduler.hpp"
#include "actors/runtime/file_stamp.hpp"

namespace infernex::router {

/// What a cached block is worth by the tier it lies on: copying it in costs less than computing it anew.
struct tier_weights {
  double device = 1.0;
  double host = 0.8;
  double disk = 0.5;
};

/// The file a policy was read from, so that it can be followed.
struct policy_source {
  std::string file;
  std::optional<infernex::config::file_stamp> stamp;
  /// What in it is not used.
  std::vector<std::string> remarks;
};

/// How requests are placed, in short: a strategy by name with a few weights. Weights are relative; a score is in 0..1,
/// higher is better.
struct policy {
  /// One of strategies().
  std::string strategy = "infernex";
  /// kv-aware: share of the prompt's cacheable blocks the engine holds.
  double weight_overlap = 2.0;
  tier_weights tiers;
  /// kv-aware and least-load: free share of the engine's KV blocks.
  double weight_kv_usage = 1.0;
  /// kv-aware and least-load: waiting requests, and requests in flight, against the busiest candidate (or 8, if
  /// that is more).
  double weight_waiting = 1.0;
  double weight_in_flight = 1.0;
  /// Runners-up kept for retry, the chosen one not counted.
  std::uint32_t runners_up = 3;
  queue_settings queue;
  /// Read from a file of EndpointPickerConfig: takes the place of all the above but runners_up.
  std::optional<scheduler_spec> config;
  std::optional<policy_source> source;
};

/// Names of strategies, each a whole configuration of plugins.
std::vector<std::string_view> strategies();

/// Precondition: a strategy that exists.
scheduler_spec spec_of(const policy& how);
/// What is left of it when there is no index and no router to ask: least load, or turns where turns were asked for.
scheduler_spec spec_without_cache(const policy& how);

/// Whether it looks at cached blocks.
bool uses_cache(const policy& how);
/// Whether it chooses prefill and decode engines.
bool disaggregates(const policy& how);
/// Whether it is made for engines that do both, besides pairs or only.
bool takes_single_engines(const policy& how);

/// Precondition: a configuration that is right (spec_of's always are).
std::unique_ptr<scheduler> make_scheduler(const scheduler_spec& spec, std::uint64_t seed = 1);

}  // namespace infernex::router
