#include "monitor/sim_fault.hpp"

#include <array>

namespace infernex::monitor {

std::span<const fault_info> fault_table() {
  constexpr std::uint64_t minute = 60'000;
  constexpr std::uint64_t hour = 60 * minute;
  using k = fault_kind;
  static constexpr std::array<fault_info, 25> all{{
      {k::thermal_throttling, "thermal-throttling", true, true, true, false, 20 * minute, 0.9, 1.3},
      {k::power_brake, "power-brake", true, true, true, false, 20 * minute, 0.4, 0.7},
      {k::ecc_single, "ecc-single", true, true, true, false, 6 * hour, 0.3, 6},
      {k::ecc_double, "ecc-double", true, true, true, false, 10 * minute},
      {k::page_retirement, "page-retirement", true, true, false, false, 2 * hour, 2, 8},
      {k::page_limit, "page-limit", true, true, false, false, 10 * minute},
      {k::row_remap_pending, "row-remap-pending", true, false, true, false, 10 * minute},
      {k::row_remap_failure, "row-remap-failure", true, false, true, false, 10 * minute},
      {k::link_flap, "link-flap", true, true, true, false, 50 * minute},
      {k::port_down, "port-down", true, true, true, false, 10 * minute},
      {k::card_drop, "card-drop", true, true, true, false, 10 * minute},
      {k::hang, "hang", false, true, true, false, 10 * minute},
      {k::driver_mismatch, "driver-mismatch", true, true, true, false, 10 * minute},
      {k::silent_telemetry, "silent-telemetry", false, true, true, false, 5 * minute},
      {k::silent_node, "silent-node", false, true, true, true, 5 * minute},
      {k::hot_neighbour, "hot-neighbour", false, true, true, false, 30 * minute, 0.9, 1.4},
      {k::slow_drift, "slow-drift", false, true, true, false, 8 * hour, 0.8, 1.2},
      {k::driver_hang, "driver-hang", true, true, true, false, 5 * minute},
      {k::link_errors, "link-errors", true, false, true, false, 10 * minute, 0.5, 2},
      {k::pcie_signal, "pcie-signal", true, false, true, false, 20 * minute, 1.2, 4},
      {k::optical_module, "optical-module", true, true, false, false, 20 * minute, 0.2, 1},
      {k::memory_halved, "memory-halved", true, true, false, false, 10 * minute},
      {k::network_misconfigured, "network-misconfigured", true, true, false, false, 10 * minute},
      {k::driver_fault, "driver-fault", true, false, true, false, 10 * minute},
      {k::code, "code", true, true, true, false, 10 * minute},
  }};
  return all;
}

const fault_info& info(fault_kind kind) { return fault_table()[static_cast<std::size_t>(kind)]; }

const fault_info* find_fault(std::string_view name) {
  for (const auto& row : fault_table())
    if (row.name == name) return &row;
  return nullptr;
}

bool can_happen(fault_kind kind, fb::HwVendor vendor) {
  return vendor == fb::HwVendor::Ascend ? info(kind).ascend : vendor == fb::HwVendor::Nvidia && info(kind).nvidia;
}

}  // namespace infernex::monitor
