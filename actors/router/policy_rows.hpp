#pragma once

// Private to policy: strategies as rows of a table, each a name and the configuration it stands for.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/router/policy.hpp"

namespace infernex::router {

struct strategy_row {
  std::string_view name;
  scheduler_spec (*make)(const policy&);
};

inline scheduler_spec one_profile(std::string name, std::vector<scheduler_spec::plugin> plugins,
                                  std::vector<scheduler_spec::use> uses) {
  scheduler_spec spec;
  spec.name = std::move(name);
  spec.plugins = std::move(plugins);
  spec.profiles.push_back({"default", std::move(uses)});
  return spec;
}

/// Those of other systems, with their formulas and defaults, to compare with and to move from: weights of the policy do
/// not apply.
std::span<const strategy_row> peer_strategies();
/// Those that choose pairs where there are PD groups, and those made of openFuyao's and llm-d's plugins.
std::span<const strategy_row> apart_strategies();

}  // namespace infernex::router
