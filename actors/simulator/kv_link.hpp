#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

/// The way a prefill engine's KV takes: one transfer after the other, latency + bytes / bandwidth each (latencies
/// overlap). Virtual time.
class kv_link {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  kv_link(const kv_transfer_settings& values, double speed) : values_(values), speed_(speed) {}

  /// How long `tokens` occupy the link.
  std::chrono::duration<double> occupied_by(std::uint64_t tokens) const {
    const double bits = static_cast<double>(tokens) * values_.bytes_per_token * 8;
    return std::chrono::duration<double>(bits / (values_.bandwidth_gbps * 1e9) / speed_);
  }
  /// When a transfer that could start at `from` is complete.
  time_point send(time_point from, std::uint64_t tokens) {
    free_at_ =
        std::max(free_at_, from) + std::chrono::duration_cast<std::chrono::steady_clock::duration>(occupied_by(tokens));
    const std::chrono::duration<double> latency = values_.latency / speed_;
    return free_at_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(latency);
  }

 private:
  const kv_transfer_settings& values_;
  double speed_;
  time_point free_at_{};
};

}  // namespace infernex::simulator
