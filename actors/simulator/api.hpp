#pragma once

#include <chrono>

#include "actors/runtime/http/server.hpp"
#include "actors/runtime/metrics.hpp"
#include "actors/simulator/engine_loop.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

/// What the HTTP handlers need; lives longer than the server.
struct engine_api {
  const settings& values;
  engine_loop& engine;
  metrics_registry& metrics;
  /// Until then every endpoint answers 503.
  std::chrono::steady_clock::time_point ready_at;
  /// Seconds since 1970.
  std::int64_t started = 0;
};

/// Answers one request as vLLM's API server would.
http::task<void> handle(engine_api& api, http::worker& on, const http::request& in, http::responder& out);

}  // namespace infernex::simulator
