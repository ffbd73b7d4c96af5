#pragma once

// What `make bench-routing` compares: a line a policy.

#include <string>
#include <vector>

#include "actors/simulator/replay_policy.hpp"
#include "actors/simulator/replay_router.hpp"

namespace infernex::bench {

struct routing_policy {
  std::string name;
  /// Fleets it is for: engines that do all, or prefill and decode apart.
  bool aggregated = true;
  bool apart = true;
  simulator::replay_policy_maker make;
};

inline std::vector<routing_policy> routing_policies() {
  std::vector<routing_policy> all;
  for (const auto name : router::strategies()) {
    router::policy policy;
    policy.strategy = name;
    all.push_back({std::string(name), router::takes_single_engines(policy), router::disaggregates(policy),
                   simulator::router_policy(policy)});
  }
  return all;
}

}  // namespace infernex::bench
