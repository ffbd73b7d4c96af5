#pragma once

#include <array>

#include "actors/runtime/metrics.hpp"
#include "diagnosis/engine.hpp"

namespace infernex::diagnosis {

/// `infernex_diagnosis_…`.
class diagnosis_metrics {
 public:
  explicit diagnosis_metrics(metrics_registry& registry);
  void update(const engine& from, std::uint64_t impostors, std::uint64_t not_sent);

 private:
  prometheus::Counter &samples_, &device_samples_, &events_, &refused_, &impostors_, &not_sent_, &raised_, &cleared_;
  prometheus::Gauge &nodes_, &devices_, &bytes_;
  std::array<prometheus::Gauge*, 5> standing_{};
};

}  // namespace infernex::diagnosis
