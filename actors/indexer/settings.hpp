#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/indexer/engine_directory.hpp"
#include "actors/indexer/index_set.hpp"
#include "actors/indexer/readiness.hpp"
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
  readiness_settings ready;
  directory_limits engines;
  /// Of the HTTP API: largest body, and how long one answer may take (an engine's rendering of a prompt included).
  std::uint64_t max_body_bytes = 8ULL << 20;
  std::chrono::milliseconds request_timeout{5'000};
  /// Engines that may be registered over HTTP at once.
  std::uint32_t max_registered = 256;
  /// Whether engines may be registered where admin_address is not a loopback address. Whoever may register makes this
  /// process connect to addresses of his choice.
  bool allow_register = false;
  /// Where the HTTP API (docs/indexer-api.md), /metrics, /healthz and /readyz are served; port 0 takes a free one,
  /// unset serves none.
  std::string admin_address = "127.0.0.1";
  std::optional<std::uint16_t> admin_port;
};

}  // namespace infernex::indexer
