#pragma once

#include <functional>
#include <vector>

#include "actors/router/fleet.hpp"
#include "actors/router/verdict_board.hpp"

namespace infernex::router {

/// An engine of one model, and what is asked for it.
struct asked_engine {
  endpoint* engine = nullptr;
  asked_action asked;
};

/// Writes the health of one model's engines: what was asked for, as far as the settings allow. Among those to isolate,
/// an engine that is isolated already stays so before others are, then the verdict raised first counts.
void settle_health(std::vector<asked_engine>& engines, const fleet_settings& how);

}  // namespace infernex::router
