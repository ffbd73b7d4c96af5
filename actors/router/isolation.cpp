#include "actors/router/isolation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace infernex::router {

namespace {

std::string_view word_of(fb::VerdictAction action) {
  switch (action) {
    case fb::VerdictAction::Isolate:
      return "isolate";
    case fb::VerdictAction::Degrade:
      return "degrade";
    case fb::VerdictAction::Watch:
      return "watch";
    default:
      return "";
  }
}

engine_health health_of(const asked_action& asked, const fleet_settings& how) {
  engine_health health;
  if (asked.action == fb::VerdictAction::Ok) return health;
  health.asked = asked.action;
  health.why.append(word_of(asked.action)).append(": ").append(asked.why);
  if (how.verdicts == verdict_use::show) {
    health.why += " (only shown, by configuration)";
    return health;
  }
  health.applied = asked.action;
  if (asked.action >= fb::VerdictAction::Degrade) health.score_factor = how.degraded_score;
  return health;
}

}  // namespace

void settle_health(std::vector<asked_engine>& engines, const fleet_settings& how) {
  using role_counts = std::array<std::size_t, 8>;
  const auto place_of = [](fb::EngineRole role) { return std::min<std::size_t>(static_cast<std::size_t>(role), 7); };
  role_counts present{};
  std::vector<std::pair<asked_engine*, bool>> to_isolate;  // and whether it is so already
  for (auto& one : engines) {
    // Who is not ready would serve nobody anyway: neither counted among the model's engines nor among the isolated.
    const bool counts = one.engine->ready();
    if (counts) ++present[place_of(one.engine->role)];
    const bool isolated = one.engine->health.isolated();
    one.engine->health = health_of(one.asked, how);
    if (counts && one.engine->health.isolated()) to_isolate.emplace_back(&one, isolated);
  }
  std::sort(to_isolate.begin(), to_isolate.end(), [](const auto& a, const auto& b) {
    return std::tuple(!a.second, a.first->asked.since, std::string_view(a.first->engine->instance)) <
           std::tuple(!b.second, b.first->asked.since, std::string_view(b.first->engine->instance));
  });
  role_counts isolated{};
  for (const auto& [one, already] : to_isolate) {
    const auto role = place_of(one->engine->role);
    const double share = how.max_isolated_share * static_cast<double>(present[role]);
    const auto by_share = static_cast<std::size_t>(std::floor(share + 1e-9));
    const auto allowed = std::min(by_share, present[role] - 1);
    if (isolated[role] < allowed) {
      ++isolated[role];
      continue;
    }
    auto& health = one->engine->health;
    health.applied = fb::VerdictAction::Degrade;
    health.why += " (served on: " + std::to_string(isolated[role]) + " of " + std::to_string(present[role]) +
                  " are isolated already, no more may be)";
  }
}

}  // namespace infernex::router
