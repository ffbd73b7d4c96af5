#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/router/fleet.hpp"
#include "actors/router/kvmanager.hpp"
#include "actors/router/policy.hpp"
#include "actors/router/prediction.hpp"
#include "actors/router/reservations.hpp"

namespace infernex::router {

struct settings {
  router::policy policy;
  fleet_settings fleet;
  reservation_book::limits reservations;
  prediction_settings prediction;
  /// Asked for overlaps instead of the indexers on the bus.
  std::optional<kvmanager_settings> kvmanager;
  /// How long the indexer may take before a request is placed by load only.
  std::chrono::milliseconds match_timeout{50};
  /// Queries that may wait for the indexer at once; above it they are refused.
  std::uint32_t max_pending = 4'096;
  /// Requests in one query.
  std::uint32_t max_items = 512;
  /// Messages of each kind that may be queued or in hand at once.
  std::uint32_t query_credit = 8'192;
  std::uint32_t fact_credit = 8'192;
  /// Where /metrics, /healthz and /readyz are served; port 0 takes a free one, unset serves none.
  std::string admin_address = "127.0.0.1";
  std::optional<std::uint16_t> admin_port;
};

}  // namespace infernex::router
