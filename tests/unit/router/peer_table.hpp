#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "actors/router/policy.hpp"

namespace infernex::router {

/// Engines `e0`, `e1`, … of model `m`, and a scheduler of the plugins a test names. Requests have 10 blocks of 16
/// tokens.
struct peer_table {
  static constexpr clock_point now{std::chrono::seconds(1'000)};

  load_board loads{64};
  model_endpoints of{"m", {}};
  std::vector<overlap> found;
  std::vector<overlap> predicted;
  bool index_known = true;
  std::vector<std::uint64_t> keys;
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  placement request;
  std::unique_ptr<scheduler> by;

  explicit peer_table(unsigned engines) {
    for (unsigned i = 0; i < engines; ++i) add("e" + std::to_string(i));
    request.request_id = "r";
    request.block_size = 16;
    request.blocks = 10;
    request.prompt_tokens = 160;
  }
  endpoint& add(std::string name, fb::EngineRole role = fb::EngineRole::Aggregated, std::string group = {}) {
    endpoint e;
    e.instance = std::move(name);
    e.state = fb::EngineState::Ready;
    e.role = role;
    e.group = std::move(group);
    e.slot = *loads.acquire();
    return of.endpoints.emplace_back(std::move(e));
  }
  void use(std::initializer_list<scheduler_spec::plugin> plugins, std::uint32_t runners_up = 3) {
    scheduler_spec spec;
    spec.name = "test";
    spec.plugins = plugins;
    spec.profiles.emplace_back();
    for (const auto& p : plugins) spec.profiles[0].plugins.push_back({p.name.empty() ? p.type : p.name});
    spec.runners_up = runners_up;
    by = make_scheduler(spec);
  }
  void in_flight(unsigned engine, std::uint32_t requests, std::uint64_t prefill_tokens = 0, std::uint64_t blocks = 0) {
    loads.set_remote(of.endpoints[engine].slot, {requests, prefill_tokens, blocks});
  }
  void measured(unsigned engine, std::optional<std::uint32_t> running, std::optional<std::uint32_t> waiting,
                std::optional<double> kv = {}) {
    loads.report(of.endpoints[engine].slot, running, waiting, kv, now);
  }
  void learned(unsigned engine, const learned_speed& speed) { loads.learn(of.endpoints[engine].slot, speed); }

  const decision& decide(scheduler::detail how_much = scheduler::detail::brief) {
    request.keys = keys;
    request.headers = headers;
    return by->decide(request, &of, loads, {index_known, index_known ? "" : "no answer", found, predicted}, now,
                      how_much);
  }
  /// Empty: nobody.
  std::string chosen() {
    const auto& d = decide();
    return d.serving.ranked.empty() ? "" : d.serving.ranked.front().to->instance;
  }
  /// All that were ranked, best first: `e1 e0`.
  std::string ranked() {
    std::string names;
    for (const auto& one : decide(scheduler::detail::every_candidate).serving.ranked)
      names.append(names.empty() ? "" : " ").append(one.to->instance);
    return names;
  }
  /// What the first scorer says of an engine.
  double score(const std::string& engine) {
    const auto& serving = decide(scheduler::detail::every_candidate).serving;
    for (std::size_t i = 0; i < serving.ranked.size(); ++i)
      if (serving.ranked[i].to->instance == engine) return serving.scores_of(i)[0];
    FAIL("not ranked: " << engine);
    return 0;
  }
  std::map<std::string, int> chosen_times(int decisions) {
    std::map<std::string, int> times;
    for (int i = 0; i < decisions; ++i) ++times[chosen()];
    return times;
  }
};

}  // namespace infernex::router
