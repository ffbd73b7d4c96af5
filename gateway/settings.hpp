#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/router/fleet.hpp"
#include "actors/router/policy.hpp"
#include "actors/router/prediction.hpp"
#include "gateway/parity_drift.hpp"
#include "gateway/router_breaker.hpp"

namespace infernex::gateway {

/// Who decides where a request goes: routers on the bus, or the gateway's own threads in place.
enum class router_mode : std::uint8_t { bus, embedded };

/// Who runs the transfer protocols of pairs: their group's proxy, or the gateway's own threads.
enum class pd_mode : std::uint8_t { proxy, embedded };

/// One way to learn a prompt's tokens. `text` means: no tokens; keys of the text, which only predictions know.
enum class token_step : std::uint8_t { render, tokenize, text };

struct token_settings {
  /// Tried in this order until one gives tokens.
  std::vector<token_step> chain{token_step::render, token_step::tokenize, token_step::text};
  std::chrono::milliseconds render_timeout{2'000};
  std::chrono::milliseconds tokenize_timeout{2'000};
  /// How long an engine is not asked again at an endpoint it does not have, and at one that failed.
  std::chrono::milliseconds absent_for{60'000};
  std::chrono::milliseconds failed_for{2'000};
  /// Memory for exact repeats, over all threads.
  std::uint64_t cache_bytes = 32ULL << 20;
  /// Largest answer read from an engine.
  std::uint64_t max_answer_bytes = 16ULL << 20;
};

struct settings {
  std::string address = "127.0.0.1";
  /// 0 takes a free port.
  std::uint16_t port = 8000;
  /// I/O threads; 0 = one a core.
  std::uint32_t threads = 0;
  /// A larger request body is answered with 413.
  std::uint64_t max_body_bytes = 8ULL << 20;
  /// A larger answer of an engine (not streamed) is answered with 502.
  std::uint64_t max_answer_bytes = 64ULL << 20;

  /// How decode engines reach it (`ascend-layerwise` with pd_mode::embedded); empty: by its address and port.
  std::string url;
  router_mode router = router_mode::bus;
  pd_mode pd = pd_mode::proxy;
  /// Ask the same router for all requests of a model (the others take over when it goes), not whichever is free.
  bool router_affinity = true;
  /// How long a router on the bus may take before the gateway decides by load only.
  std::chrono::milliseconds route_timeout{300};
  /// When a router that keeps silent is no longer asked.
  router_breaker::limits breaker;
  router::policy policy;
  /// Request headers that routing plugins may look at, besides those always told (routing_headers.cpp).
  std::vector<std::string> routing_headers;
  router::fleet_settings fleet;
  /// For decisions taken here.
  router::prediction_settings prediction;
  parity_drift::settings parity;
  token_settings tokens;

  /// A non-streaming request that takes longer is answered with 504. For a streaming one it bounds the time
  /// to the first event.
  std::chrono::milliseconds timeout{120'000};
  /// A stream in which nothing arrives for this long is given up.
  std::chrono::milliseconds stream_idle_timeout{120'000};
  std::chrono::milliseconds connect_timeout{1'000};

  /// Requests answered at once; above it, 429.
  std::uint32_t max_in_flight = 4096;
  /// Engines tried for one request before its first byte.
  std::uint32_t max_attempts = 3;
  /// How long an engine that failed is passed over: the first time, and at most.
  std::chrono::milliseconds backoff_first{1'000};
  std::chrono::milliseconds backoff_most{10'000};
  /// Shortest time between two RequestLife messages of a model.
  std::chrono::milliseconds life_interval{20};
};

}  // namespace infernex::gateway
