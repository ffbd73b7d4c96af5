#pragma once

#include <chrono>
#include <optional>

#include "actors/engine/engine_metrics.hpp"
#include "actors/engine/engine_state.hpp"
#include "actors/engine/model_list.hpp"
#include "messages/errc.hpp"

namespace infernex::engine {

/// What one round of questions to an engine found.
struct probe_result {
  health_probe health;
  std::chrono::steady_clock::time_point at;
  /// Unset: not asked this time, or the question failed.
  std::optional<engine_metrics> metrics;
  std::optional<model_list> models;
  double scrape_ms = 0;
  /// Why health, metrics or models could not be had, the last of them; errc::none if all is well.
  error problem;
};

}  // namespace infernex::engine
