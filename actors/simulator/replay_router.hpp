#pragma once

#include "actors/router/policy.hpp"
#include "actors/router/prediction.hpp"
#include "actors/simulator/replay_policy.hpp"

namespace infernex::simulator {

/// The router's own scheduler, load board, topology, predictions and learned speeds, as a live router process has them.
/// Precondition: a configuration that is right. Aggregated, prefill and decode engines are candidates of one model, and
/// all of one PD group.
replay_policy_maker router_policy(router::scheduler_spec how, router::prediction_settings predictions = {});
/// The same, by a strategy's name.
replay_policy_maker router_policy(const router::policy& how, router::prediction_settings predictions = {});

}  // namespace infernex::simulator
