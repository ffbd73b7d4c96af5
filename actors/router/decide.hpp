#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/kv_index.hpp"
#include "actors/router/load_board.hpp"
#include "actors/router/topology.hpp"

namespace infernex::router {

enum class strategy : std::uint8_t { round_robin, least_load, kv_aware };
std::string_view name(strategy s);

/// What a cached block is worth by the tier it lies on: copying it in costs less than computing it anew.
struct tier_weights {
  double device = 1.0;
  double host = 0.8;
  double disk = 0.5;
};

/// How a request is placed. Weights are relative; a score is in 0..1, higher is better.
struct policy {
  strategy how = strategy::kv_aware;
  /// kv_aware: share of the prompt's cacheable blocks the engine holds.
  double weight_overlap = 2.0;
  tier_weights tiers;
  /// kv_aware and least_load: free share of the engine's KV blocks.
  double weight_kv_usage = 1.0;
  /// kv_aware and least_load: waiting requests, and requests in flight, against the busiest candidate (or 8, if
  /// that is more).
  double weight_waiting = 1.0;
  double weight_in_flight = 1.0;
  /// Runners-up kept for retry, the chosen one not counted.
  std::uint32_t runners_up = 3;
};

/// A request as far as placing it goes. Points into the caller's memory.
struct placement {
  std::string_view request_id;
  std::string_view adapter;
  fb::KeyMode key_mode = fb::KeyMode::Text;
  std::optional<std::uint32_t> prompt_tokens;
  std::uint32_t prompt_bytes = 0;
  std::uint32_t block_size = 0;
  /// Number of cacheable blocks (the length of the key chain).
  std::uint32_t blocks = 0;
  std::span<const std::string_view> exclude;
};

/// Leading blocks of the request that an instance caches, or should cache.
using overlap = indexer::match;

/// What the KV index said, or why it said nothing; and what is predicted of what was routed lately.
struct overlaps {
  bool known = false;
  /// Why not, e.g. "the indexer did not answer in 50 ms". Empty if known.
  std::string_view unknown_because;
  std::span<const overlap> found;
  std::span<const overlap> predicted;
};

struct scored {
  const endpoint* to = nullptr;
  double total = 0;
  /// By the index: on any tier, of those on the device, and on device or host.
  std::uint32_t overlap_blocks = 0;
  std::uint32_t device_blocks = 0;
  std::uint32_t host_blocks = 0;
  std::uint32_t predicted_blocks = 0;
  /// The prediction is worth more than what the index knows.
  bool by_prediction = false;
  struct part {
    std::string_view scorer;
    double value;
  };
  std::vector<part> parts;

  /// Blocks that need no prefill, as far as known.
  std::uint32_t expected_blocks() const { return std::max(overlap_blocks, predicted_blocks); }
};

/// Where a request goes. Points into the topology it was decided on.
struct decision {
  /// Best first; empty: nobody can take it, and `reason` says why.
  std::vector<scored> ranked;
  /// One line for people.
  std::string reason;
  bool index_used = false;
  /// The chosen engine's overlap is a prediction.
  bool by_prediction = false;
};

/// The state that a decision moves: the turn of round-robin, which also breaks ties.
struct rotation {
  std::uint64_t turn = 0;
};

/// Filters, scores, ranks. A pure function of its arguments (the board is read at `now`). It does not
/// reserve: the caller does, for the choice it takes. `candidates` may be null: the model is unknown.
decision decide(const placement& request, const model_endpoints* candidates, const load_board& loads,
                const overlaps& cached, const policy& how, rotation& turn, clock_point now);

/// Tokens an engine that caches so many leading blocks will have to prefill for this request, as far as known:
/// what a reservation counts.
std::uint64_t expected_prefill(const placement& request, std::uint32_t cached_blocks);

}  // namespace infernex::router
