#pragma once

#include "actors/router/decide.hpp"
#include "actors/router/prediction.hpp"
#include "actors/simulator/replay_policy.hpp"

namespace infernex::simulator {

/// The router's own decide(), load board, topology and predictions, as a live router process has them. Prefill and
/// decode engines are two fleets to it: the prompt is placed among the former as if they were aggregated, the answer
/// among the latter by load.
replay_policy_maker router_policy(router::policy how, router::prediction_settings predictions = {});

}  // namespace infernex::simulator
