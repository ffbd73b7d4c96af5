#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "messages/registry.hpp"

namespace infernex::monitor {

/// What can be made to go wrong. Append only; what each does is in sim_effects*.cpp.
enum class fault_kind : std::uint8_t {
  thermal_throttling,
  power_brake,
  ecc_single,
  ecc_double,
  page_retirement,
  page_limit,
  row_remap_pending,
  row_remap_failure,
  link_flap,
  port_down,
  card_drop,
  hang,
  driver_mismatch,
  silent_telemetry,
  silent_node,
  hot_neighbour,
  slow_drift,
  driver_hang,
  link_errors,
  pcie_signal,
  optical_module,
  memory_halved,
  network_misconfigured,
  driver_fault,
  code,
};

struct fault_info {
  fault_kind kind = fault_kind::code;
  /// In scripts and in the labels of the benchmark.
  std::string_view name;
  /// Whether hardware says so itself: by a code, a state or a counter. The others show in readings only.
  bool coded = true;
  bool ascend = true;
  bool nvidia = true;
  /// It hits every device of the node.
  bool node_wide = false;
  /// How long drawn ones last, and how strong they are (what strength means is said in sim_effects*.cpp).
  std::uint64_t usual_ms = 600'000;
  double least_strength = 1;
  double most_strength = 1;
};

std::span<const fault_info> fault_table();
const fault_info& info(fault_kind kind);
const fault_info* find_fault(std::string_view name);
bool can_happen(fault_kind kind, fb::HwVendor vendor);

/// One fault to come: at a time, for a time, at a device. When it ends the device has been treated: reset or replaced.
struct sim_fault {
  fault_kind kind = fault_kind::code;
  std::uint32_t node = 0;
  std::uint32_t device = 0;
  std::uint64_t at_ms = 0;
  std::uint64_t for_ms = 600'000;
  double strength = 1;
  /// Of the kind `code`: an Ascend fault code or an XID.
  std::uint64_t number = 0;
};

/// What a benchmark holds verdicts against.
struct sim_truth {
  sim_fault fault;
  /// When it first showed in what a monitor sees: for what is defined by a number (a flap, a storm), when that was
  /// reached. Nothing: it has not yet, e.g. a cooling fault in an idle device.
  std::optional<std::uint64_t> visible_ms;
  /// When the device was treated.
  std::optional<std::uint64_t> ended_ms;
};

}  // namespace infernex::monitor
