#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/device_sample.hpp"
#include "monitor/sim_model.hpp"
#include "monitor/sim_random.hpp"

namespace infernex::monitor {

struct sim_code {
  std::uint64_t number = 0;
  fb::HwLevel level = fb::HwLevel::Unknown;
};

/// What makes one device of a kind differ from the next.
struct sim_traits {
  double resistance = 1;
  double power = 1;
  double sensor_offset = 0;
  double single_bit_errors_a_day = 0.3;
};

/// What counts up.
struct sim_counts {
  double ecc_single = 0;
  double ecc_double = 0;
  double ecc_single_lifetime = 0;
  double ecc_double_lifetime = 0;
  double pages_single = 0;
  double pages_double = 0;
  double pages_pending = 0;
  double rows_correctable = 0;
  double rows_uncorrectable = 0;
  double pcie_replays = 0;
  double link_crc = 0;
  double link_replays = 0;
  double link_recoveries = 0;
  double hccs_crc = 0;
  double port_ups = 1;
  double port_downs = 0;
  double roce_packets = 0;
  double roce_retries = 0;
  double thermal_seconds = 0;
  double power_cap_seconds = 0;
  double brake_seconds = 0;
};

/// What is so until it changes.
struct sim_condition {
  bool present = true;
  bool port_up = true;
  int network_health = 0;
  bool fec = true;
  std::uint32_t links_down = 0;  // a bit a link
  bool row_pending = false;
  bool row_failure = false;
  int compatibility = 1;
  int recovery_action = 0;
  double pcie_width = 16;
  double memory_share = 1;
  std::array<double, 4> rx_milliwatts{};
  std::array<double, 4> tx_milliwatts{};
};

/// What faults and incidents do to one step; neutral unless set anew.
struct sim_influence {
  double resistance = 1;
  double inlet = 0;
  double clock_cap = 1;
  double least_load = 0;
  double spike = 0;
  bool brake = false;
  bool stalled = false;
  bool silent = false;
  bool dropped = false;
  bool read_failed = false;
  /// NVML 18 for every call.
  bool mismatched = false;
  std::uint32_t hang_ms = 0;
};

struct sim_device {
  const sim_model* model = nullptr;
  std::uint32_t index = 0;
  std::string id;
  std::string bus_id;
  std::string serial;
  sim_traits traits;
  sim_counts counts;
  sim_condition condition;
  sim_influence influence;
  std::vector<sim_code> codes;
  /// What it does, per cent; what it draws; how warm it is.
  double load = 0;  // 0..1, without noise
  double utilization = 0;
  double bandwidth = 0;
  double watts = 0;
  double celsius = 0;
  double memory_celsius = 0;
  double clock = 1;  // of the rated
  bool throttled = false;
  bool power_capped = false;
  int processes = 1;
  /// Advances by `seconds` in air of `inlet`; `share` = 1 - exp(-seconds / time constant).
  void step(double inlet, double group_load, double seconds, double share, sim_random& random);
  /// Driver loaded anew or device reset: what is not kept in the device is 0 again, what waited for it is done.
  void reset();
  /// Another device of the same model takes its place.
  void replace(sim_random& random);
};

/// What a monitor reads of it now. `slow_age_ms`: how old the readings are that are taken once a minute.
void read_device(const sim_device& device, std::uint32_t slow_age_ms, sim_random& random, device_sample& into);

}  // namespace infernex::monitor
