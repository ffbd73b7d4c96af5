#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "actors/router/placement.hpp"
#include "actors/router/saturation.hpp"

namespace infernex::router {

/// What happens while every engine is saturated.
struct queue_settings {
  /// False: requests go to saturated engines.
  bool enabled = true;
  std::uint32_t max_requests = 1'024;
  /// The longest wait; a request's own deadline counts where that is earlier.
  std::chrono::milliseconds max_wait{30'000};
  saturation_limits saturated;
  /// Priorities by the names of objectives. Below 0: shed rather than kept waiting.
  std::map<std::string, std::int32_t, std::less<>> objectives;
};

/// Priorities are within this, so that what clients say makes no more of them.
inline constexpr std::int32_t most_priority = 1'000'000;

/// Whose request it is and how it is to wait, as its headers say.
struct request_terms {
  /// `x-llm-d-inference-fairness-id` (`x-gateway-inference-fairness-id`); without it, all are of one tenant.
  std::string_view tenant = "default-flow";
  /// `x-llm-d-inference-objective` (`x-gateway-inference-objective`): an objective's name, or a number; others are 0.
  std::int32_t priority = 0;
  /// `x-llm-d-slo-ttft-ms` (`x-slo-ttft-ms`).
  std::optional<std::chrono::milliseconds> ttft = {};
};

/// `headers`: names in lower case.
request_terms terms_of(std::span<const std::pair<std::string_view, std::string_view>> headers,
                       const queue_settings& how);

/// Tokens it counts for in its tenant's share: the prompt's, and the most its answer may have.
std::uint64_t cost_of(const placement& request);

}  // namespace infernex::router
