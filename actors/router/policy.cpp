#include "actors/router/policy.hpp"

#include <stdexcept>

#include "actors/router/policy_rows.hpp"

namespace infernex::router {

namespace {

scheduler_spec kv_aware(const policy& how) {
  return one_profile("kv-aware",
                     {{"overlap",
                       "overlap-scorer",
                       {{"device", how.tiers.device}, {"host", how.tiers.host}, {"disk", how.tiers.disk}}},
                      {"kv-usage", "kv-cache-utilization-scorer", {}},
                      {"waiting", "waiting-scorer", {}},
                      {"in-flight", "in-flight-scorer", {}}},
                     {{"overlap", how.weight_overlap},
                      {"kv-usage", how.weight_kv_usage},
                      {"waiting", how.weight_waiting},
                      {"in-flight", how.weight_in_flight}});
}

scheduler_spec least_load(const policy& how) {
  return one_profile(
      "least-load",
      {{"kv-usage", "kv-cache-utilization-scorer", {}},
       {"waiting", "waiting-scorer", {}},
       {"in-flight", "in-flight-scorer", {}}},
      {{"kv-usage", how.weight_kv_usage}, {"waiting", how.weight_waiting}, {"in-flight", how.weight_in_flight}});
}

scheduler_spec round_robin(const policy&) {
  return one_profile("round-robin", {{"turn", "round-robin-picker", {}}}, {{"turn"}});
}

scheduler_spec random(const policy&) { return one_profile("random", {{"any", "random-picker", {}}}, {{"any"}}); }

constexpr strategy_row rows[] = {
    {"kv-aware", kv_aware},
    {"least-load", least_load},
    {"random", random},
    {"round-robin", round_robin},
};

const strategy_row* find_row(std::string_view name) {
  for (const auto all : {std::span<const strategy_row>(rows), peer_strategies(), apart_strategies()})
    for (const auto& row : all)
      if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

std::vector<std::string_view> strategies() {
  std::vector<std::string_view> names;
  for (const auto all : {std::span<const strategy_row>(rows), peer_strategies(), apart_strategies()})
    for (const auto& row : all) names.push_back(row.name);
  return names;
}

scheduler_spec spec_of(const policy& how) {
  const auto* row = find_row(how.strategy);
  if (!how.config && !row) throw std::invalid_argument("no strategy " + how.strategy);
  auto spec = how.config ? *how.config : row->make(how);
  spec.runners_up = how.runners_up;
  return spec;
}

scheduler_spec spec_without_cache(const policy& how) {
  // Where the policy chooses pairs there may be no engine that does both.
  const auto is = [&](std::string_view name) { return !how.config && how.strategy == name; };
  const auto* turns = is("round-robin") || is("round-robin-pd") ? find_row(how.strategy) : nullptr;
  auto spec = (turns ? turns : find_row(disaggregates(how) ? "least-load-pd" : "least-load"))->make(how);
  spec.runners_up = how.runners_up;
  return spec;
}

bool uses_cache(const policy& how) { return make_scheduler(spec_of(how))->uses_cache(); }

bool disaggregates(const policy& how) { return make_scheduler(spec_of(how))->disaggregates(); }

bool takes_single_engines(const policy& how) { return how.config || how.strategy == "infernex" || !disaggregates(how); }

std::unique_ptr<scheduler> make_scheduler(const scheduler_spec& spec, std::uint64_t seed) {
  std::vector<spec_problem> problems;
  auto made = scheduler::make(spec, problems, seed);
  if (!made) throw std::invalid_argument(problems.front().path + ": " + problems.front().message);
  return made;
}

}  // namespace infernex::router
