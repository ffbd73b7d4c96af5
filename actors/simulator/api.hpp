#pragma once

#include <chrono>
#include <functional>

#include "actors/runtime/http/server.hpp"
#include "actors/runtime/metrics.hpp"
#include "actors/simulator/engine_loop.hpp"
#include "actors/simulator/kv_transfer.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

/// The engine stops listening (its state stays), ends and starts anew, or takes its process with it.
struct outage {
  enum class kind : std::uint8_t { refuse, restart, exit };
  kind what = kind::restart;
  std::chrono::milliseconds down{0};
};

/// What the HTTP handlers need; lives longer than the server.
struct engine_api {
  const settings& values;
  engine_loop& engine;
  kv_transfer& transfer;
  fault_book& faults;
  metrics_registry& metrics;
  /// Until then every endpoint answers 503.
  std::chrono::steady_clock::time_point ready_at;
  /// Seconds since 1970.
  std::int64_t started = 0;
  /// Connections open to the engine and its second listener.
  std::function<std::size_t()> connections;
  /// Thread-safe; happens soon after.
  std::function<void(const outage&)> on_outage;
  /// Inference requests being answered.
  std::uint32_t answering = 0;
};

/// Answers one request as vLLM's API server would.
http::task<void> handle(engine_api& api, http::worker& on, const http::request& in, http::responder& out);

}  // namespace infernex::simulator
