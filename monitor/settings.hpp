#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/sim_fault.hpp"
#include "monitor/sim_settings.hpp"

namespace infernex::monitor {

/// Where the monitor's reports come from.
enum class origin_kind : std::uint8_t { node, simulated, recording };

struct settings {
  /// Empty: the host's name.
  std::string node;
  origin_kind from = origin_kind::node;
  std::chrono::milliseconds interval{1'000};
  /// Devices that should be here; absent: nobody said.
  std::optional<std::uint32_t> expected_devices;
  /// A call into a driver that has not come back after this counts as hung.
  std::chrono::milliseconds call_deadline{5'000};
  /// GET /metrics, /healthz, /readyz; absent: no endpoint.
  std::optional<std::uint16_t> admin_port;
  /// Nodes whose devices are on the metrics page at most (a simulated fleet may have thousands).
  std::uint32_t page_nodes = 16;
  /// A file that all messages are written to; empty: none.
  std::string record;
  std::uint64_t record_bytes = 1ULL << 30;
  /// Every message as JSON on `mirror_subject` too.
  bool mirror = false;
  std::string mirror_subject = "eagle_eye.hardware.hardware_monitor";
  /// For `recording`.
  std::string replay;
  double replay_speed = 1;
  /// For `simulated`.
  sim_settings sim;
  std::vector<sim_fault> faults;
};

}  // namespace infernex::monitor
