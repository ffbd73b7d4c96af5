#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::gateway {

/// A request as far as placing it goes, owned, for it may wait for a router.
struct route_request {
  std::string request_id;
  /// Base model, and adapter (empty for the base model).
  std::string model;
  std::string adapter;
  fb::KeyMode key_mode = fb::KeyMode::Text;
  std::optional<std::uint32_t> prompt_tokens;
  std::uint32_t prompt_bytes = 0;
  std::uint32_t block_size = 0;
  /// Keys of the cacheable blocks, first block first.
  std::vector<std::uint64_t> keys;
  std::optional<std::uint32_t> max_tokens;
  std::vector<std::string> exclude;
  /// Those that plugins may look at (routing_headers).
  std::vector<std::pair<std::string, std::string>> headers;
  /// When its client is answered whatever has come of it.
  std::optional<std::chrono::steady_clock::time_point> ends_at = {};
};

/// An engine that can take the request.
struct candidate {
  std::string instance;
  std::string url;
  /// Leading blocks of the prompt that it caches by the index, and should cache by what was routed there lately.
  std::uint32_t overlap_blocks = 0;
  std::uint32_t predicted_blocks = 0;
  /// The latter is worth more.
  bool by_prediction = false;
  /// Of an engine with several ranks behind one URL.
  std::optional<std::uint32_t> data_parallel_rank;
  /// The engine that computes the prompt for it.
  std::string prefill_instance = {};
  std::string prefill_url = {};
  /// The PD group whose proxy it is reached by; empty: none, it is asked itself.
  std::string pd_group = {};
  /// No prefill engine is named, but the group is to find one.
  bool group_prefills = false;

  bool pair() const { return !prefill_instance.empty(); }
  bool by_group() const { return pair() || !pd_group.empty(); }
  bool prefills_itself() const { return !pair() && !group_prefills; }
  std::uint32_t expected_blocks() const { return std::max(overlap_blocks, predicted_blocks); }
};

/// It is not to be placed now, for every engine is saturated.
struct shed_request {
  std::chrono::milliseconds retry_after{1'000};
  /// It was kept waiting before; not: it was turned away at once.
  bool waited = false;
};

/// Where a request goes: best engine first, or none, and one line for people that says why.
struct choice {
  std::vector<candidate> ranked;
  std::string reason;
  bool index_used = false;
  /// Taken here for lack of a router's answer.
  bool by_fallback = false;
  /// Then nobody is ranked, and nobody else is to be asked.
  std::optional<shed_request> shed = {};
  /// Not an answer yet: it waits for an engine to have room.
  bool waits = false;
};

}  // namespace infernex::gateway
