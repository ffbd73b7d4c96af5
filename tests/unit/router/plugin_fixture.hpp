#pragma once

// One plugin on its own: candidates made by hand, a context, and what the plugin makes of them.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/parse.hpp>
#include <doctest/doctest.h>

#include "actors/router/parameters.hpp"

namespace infernex::router {

/// Makes a plugin of a type. Fails the test where the parameters are refused.
template <class Kind>
std::unique_ptr<Kind> make_plugin(std::string_view type, std::string_view json = "{}") {
  std::vector<spec_problem> problems;
  const auto given = boost::json::parse(json).as_object();
  parameters p(given, "parameters", problems);
  const auto* found = find_plugin_type(type);
  REQUIRE_MESSAGE(found, std::string(type));
  auto made = found->make(p);
  p.finish();
  REQUIRE_MESSAGE(problems.empty(), (problems.front().path + ": " + problems.front().message));
  auto* held = std::get_if<std::unique_ptr<Kind>>(&made);
  REQUIRE_MESSAGE(held, (std::string(type) + " is of another kind"));
  return std::move(*held);
}

/// What is wrong with the parameters: `path: message` of the first problem, or nothing.
inline std::string refused(std::string_view type, std::string_view json) {
  std::vector<spec_problem> problems;
  const auto given = boost::json::parse(json).as_object();
  parameters p(given, "parameters", problems);
  find_plugin_type(type)->make(p);
  p.finish();
  return problems.empty() ? "" : problems.front().path + ": " + problems.front().message;
}

/// Candidates and the request they are looked at for. References to candidates stay good only until the next add().
struct plugin_bench {
  std::deque<endpoint> endpoints;
  std::vector<candidate> all;
  placement request;
  model_endpoints model{"m", {}};
  clock_point now{std::chrono::seconds(1'000)};
  std::uint64_t turn = 0;
  random_source random{7};
  serving_leg leg = serving_leg::decode;
  const candidate* partner = nullptr;

  endpoint& add(std::string instance, fb::EngineRole role = fb::EngineRole::Aggregated, std::string group = {}) {
    auto& e = endpoints.emplace_back();
    e.instance = std::move(instance);
    e.url = "http://" + e.instance + ":8000";
    e.role = role;
    e.state = fb::EngineState::Ready;
    e.group = std::move(group);
    all.emplace_back().to = &e;
    return e;
  }
  /// Engines that were added but are no longer in `all` are still the model's.
  decision_context context() {
    model.endpoints.assign(endpoints.begin(), endpoints.end());
    const auto number = turn++;
    return {request, model, now, true, number, random, leg, partner, number};
  }

  std::vector<double> score(scorer& by) {
    std::vector<double> out(all.size());
    by.score(context(), all, out);
    return out;
  }
  std::vector<double> score(std::string_view type, std::string_view json = "{}") {
    return score(*make_plugin<scorer>(type, json));
  }
  /// Names of those the filter keeps, each followed by a blank.
  std::string kept(filter& by) {
    auto left = all;
    by.apply(context(), left);
    std::string names;
    for (const auto& c : left) names += c.to->instance + " ";
    return names;
  }
  std::string kept(std::string_view type, std::string_view json = "{}") {
    return kept(*make_plugin<filter>(type, json));
  }
};

using roles = fb::EngineRole;

/// Equal, as far as floating point goes; two that are not measured are equal.
inline void check_scores(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (wanted[i] != wanted[i])
      CHECK(got[i] != got[i]);
    else
      CHECK(got[i] == doctest::Approx(wanted[i]));
  }
}

}  // namespace infernex::router
