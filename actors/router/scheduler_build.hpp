#pragma once

// Private to the scheduler: a configuration made into plugins.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/router/scheduler.hpp"

namespace infernex::router {

template <class Plugin>
struct named {
  Plugin* plugin = nullptr;
  std::string_view name;
  double weight = 1.0;
};

struct built_profile {
  std::string name;
  std::vector<named<filter>> filters;
  std::vector<named<scorer>> scorers;
  router::picker* picker = nullptr;
  /// Each of them once.
  std::vector<plugin*> members;
  /// One of the filters chooses by role.
  bool by_role = false;
};

struct built_scheduler {
  std::string name;
  /// With their names, in the order of the configuration; those added by default at the end.
  std::vector<std::pair<std::string, plugin_type::made>> plugins;
  std::vector<built_profile> profiles;
  profile_handler* handler = nullptr;
  std::uint32_t runners_up = 0;
  bool uses_cache = false;

  /// Null if there is none; an empty name is the first.
  const built_profile* find(std::string_view profile) const;
};

/// Adds a single-profile-handler and max-score-pickers where the configuration has none. The result is of use only if
/// no problem was added.
built_scheduler build(const scheduler_spec& spec, std::vector<spec_problem>& problems);

}  // namespace infernex::router
