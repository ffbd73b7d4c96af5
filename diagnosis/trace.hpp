#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/patient.hpp"

namespace infernex::diagnosis {

/// The last ten minutes of what is drawn as a curve: every tenth second, a float each.
class trace {
 public:
  static constexpr std::size_t length = 64;
  static constexpr millis interval = 10'000;
  static constexpr std::array metrics{metric::Temperature,       metric::Power,
                                      metric::Utilization,       metric::AicoreUtilization,
                                      metric::CoreClock,         metric::MemoryBandwidthUtilization,
                                      metric::MemoryTemperature, metric::TemperatureMargin};

  /// Takes the values if it is time.
  void add(const patient& from, millis now);
  /// Times (of the receiver) and values, oldest first; false: it is none of those drawn, or was never measured.
  bool curve(metric id, std::vector<millis>& times, std::vector<double>& values) const;
  bool is_due(millis now) const { return now >= next_; }

 private:
  millis next_ = 0;
  std::uint8_t count_ = 0;
  std::uint8_t head_ = 0;
  std::array<millis, length> times_{};
  std::array<std::array<float, length>, metrics.size()> values_{};  // NaN: not measured
};

}  // namespace infernex::diagnosis
