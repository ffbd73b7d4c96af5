#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "diagnosis/knowledge.hpp"

namespace infernex::diagnosis {

/// How one device's temperature and power behave, in windows of half a minute: against what it used to show at the same
/// power, and against its peers. Temperature is held against power as a filter of the die's own inertia would show it,
/// so that load drops out; the median of the peers drops the room out. Warnings come of it, never more.
class thermal_watch {
 public:
  static constexpr millis window = 30'000;
  /// Windows until it is judged, peers that a judgement needs.
  static constexpr std::uint32_t warm_up = 60;
  static constexpr std::size_t least_peers = 4;

  void add(std::optional<double> celsius, std::optional<double> watts, std::optional<double> load, millis now);
  double filtered_watts() const { return filtered_; }
  bool warmer() const { return warmer_; }
  bool drifts() const { return drifts_; }
  bool odd_power() const { return odd_power_; }
  /// Degrees above what it would show if it were like its peers, in the last window; nothing: not judged yet.
  std::optional<double> excess() const { return excess_; }

  /// Ends the window for the devices of one model on a node, and judges them.
  static void end_window(std::span<thermal_watch* const> peers);

 private:
  bool has_window() const { return count_ >= 2; }
  double slope() const;
  double residual() const;
  /// Degrees by which residual() may be wrong since so little was seen at the power of now.
  double doubt() const;
  void learn();
  void judge(double excess, double scale);
  void judge_power(double apart, double scale);
  void start_window() {
    count_ = 0;
    sum_celsius_ = sum_watts_ = sum_filtered_ = sum_load_ = 0;
  }

  // This window.
  std::uint32_t count_ = 0;
  double sum_celsius_ = 0;
  double sum_watts_ = 0;
  double sum_filtered_ = 0;
  double sum_load_ = 0;
  // The filter.
  double filtered_ = 0;
  millis last_ = 0;
  // The line through temperature over power; older windows weigh less, by the day.
  double weight_ = 0;
  double mean_watts_ = 0;
  double mean_celsius_ = 0;
  double spread_ = 0;
  double common_ = 0;
  std::uint32_t windows_ = 0;
  // Against the peers.
  std::optional<double> excess_;
  double slow_ = 0;
  double cusum_ = 0;
  std::uint32_t hot_windows_ = 0;  // a bit a window, the last in the lowest
  std::uint32_t power_windows_ = 0;
  bool warmer_ = false;
  bool drifts_ = false;
  bool odd_power_ = false;
};

}  // namespace infernex::diagnosis
