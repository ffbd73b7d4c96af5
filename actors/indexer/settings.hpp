#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/indexer/index_set.hpp"
#include "actors/indexer/tracker.hpp"

namespace infernex::indexer {

struct settings {
  index_set::limits index;
  tracker_settings tracking;
  /// Messages of each kind that may be queued or in hand at once; above it deltas are dropped (and repaired
  /// as gaps), queries refused.
  std::uint32_t delta_credit = 8'192;
  std::uint32_t announce_credit = 4'096;
  std::uint32_t match_credit = 4'096;
  /// Where /v1/index, /metrics, /healthz and /readyz are served; port 0 takes a free one, unset serves none.
  std::string admin_address = "127.0.0.1";
  std::optional<std::uint16_t> admin_port;
};

}  // namespace infernex::indexer
