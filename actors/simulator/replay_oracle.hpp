#pragma once

#include "actors/simulator/replay_policy.hpp"

namespace infernex::simulator {

/// What no router can know: for every engine the true time of the request's first token if it were sent there now, from
/// the engine's true state and the true lengths of all answers (batch_forecast), without the future's arrivals. Chosen
/// is the least; of equals the engine with fewer blocks held.
///
/// Least for the one request is not least for all: work that a cache would have saved delays those to come. So
/// `work_weight` of the milliseconds that the prompt takes of the engine's time are added to its own delay; a bound is
/// the best over several weights.
replay_policy_maker oracle_policy(double work_weight = 0);

}  // namespace infernex::simulator
