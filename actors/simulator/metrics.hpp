#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "actors/runtime/metrics.hpp"
#include "actors/simulator/settings.hpp"
#include "actors/simulator/step_model.hpp"

namespace infernex::simulator {

/// How a sequence ended, as vLLM labels it.
enum class end_reason : std::uint8_t { stop, length, abort };

/// The engine's metrics under vLLM's names, with labels model_name and engine. Buckets are vLLM's.
class engine_metrics {
 public:
  engine_metrics(metrics_registry& registry, const settings& engine);

  /// The engine starts, for the first time or anew: its totals begin at zero (the counters go on).
  void begins();
  void load(const engine_load& now);
  void first_token(std::uint32_t prompt_tokens, std::chrono::duration<double> since_arrival);
  void next_token(std::chrono::duration<double> since_previous);
  void ended(end_reason why, std::chrono::duration<double> since_arrival);

 private:
  prometheus::Gauge& running_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& kv_usage_;
  prometheus::Counter& prefix_queries_;
  prometheus::Counter& prefix_hits_;
  prometheus::Counter& preemptions_;
  prometheus::Counter& external_queries_;
  prometheus::Counter& external_hits_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generation_tokens_;
  std::array<prometheus::Counter*, 3> ended_;
  prometheus::Histogram& first_token_seconds_;
  prometheus::Histogram& inter_token_seconds_;
  prometheus::Histogram& request_seconds_;
  prometheus::Gauge& started_;
  /// What the counters have been told of the totals.
  engine_load told_;
};

}  // namespace infernex::simulator
