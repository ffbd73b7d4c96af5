#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "actors/proxy/exchange_settings.hpp"
#include "actors/proxy/group.hpp"

namespace infernex::proxy {

struct settings {
  std::string address = "127.0.0.1";
  /// 0 takes a free port.
  std::uint16_t port = 8100;
  /// How gateways and decode engines reach it; empty: by its address and port.
  std::string url;
  /// I/O threads; 0 = one a core.
  std::uint32_t threads = 0;
  /// A larger request body is answered with 413.
  std::uint64_t max_body_bytes = 8ULL << 20;
  /// Requests answered at once; above it, 429.
  std::uint32_t max_in_flight = 1024;

  group_settings group;
  exchange_settings exchange;

  /// Of engines that nobody announces: GET /health.
  std::chrono::milliseconds probe_interval{500};
  std::chrono::milliseconds probe_timeout{1'000};
  /// How long POST /instances/add waits for an engine to be healthy.
  std::chrono::milliseconds add_timeout{60'000};
  /// For one engine's metrics page, and the largest one.
  std::chrono::milliseconds scrape_timeout{1'000};
  std::uint64_t max_scrape_bytes = 4ULL << 20;
  std::uint32_t announce_credit = 4096;
};

}  // namespace infernex::proxy
