#pragma once

#include <map>
#include <string>

#include "actors/runtime/metrics.hpp"
#include "gateway/life.hpp"
#include "gateway/parity_drift.hpp"

namespace infernex::gateway {

/// Expected against reported cached tokens, engine by engine: counters, and a line in the log when the two drift
/// apart or agree again. The gateway's actor owns it, so that a process says it once.
class parity {
 public:
  parity(metrics_registry& registry, parity_drift::settings how)
      : registry_(registry), drift_{parity_drift(how), parity_drift(how)} {}

  void note(const life_finish& finished);
  /// Engines whose drift was forgotten for a bound.
  std::uint64_t evicted() const { return drift_[0].evicted() + drift_[1].evicted(); }

 private:
  struct counters {
    prometheus::Counter* predicted = nullptr;
    prometheus::Counter* reported = nullptr;
  };
  counters& of(const std::string& instance, bool by_prediction);

  metrics_registry& registry_;
  /// By the index, and by prediction: one may be right while the other is not.
  parity_drift drift_[2];
  std::map<std::string, counters> by_instance_[2];
};

}  // namespace infernex::gateway
