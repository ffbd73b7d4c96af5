// A policy's file that is followed, and explanations.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <doctest/doctest.h>

#include "actors/router/picker_config.hpp"
#include "tests/component/router/fixture.hpp"

namespace infernex {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::fake_agent;
using test::prompt_keys;
using setup = test::router_setup;
using test::without_predictions;

TEST_CASE("an explanation has every engine, with the filter that left it out, and leaves no trace") {
  router::settings how;
  how.policy.strategy = "kv-aware";
  setup s(how);
  s.start_indexer("e1", 3);
  std::atomic<unsigned> watched{0};
  const auto watching =
      s.outside->subscribe(s.outside->names().route_decision("m"), {}, [&](inbound<fb::RouteDecision>&& m) {
        for (const auto* choice : *m.message->choices()) watched += choice->request_id()->str().starts_with("why");
      });
  REQUIRE(watching);
  REQUIRE(eventually([&] { return s.ready(); }));
  auto query = s.query(2, "m");
  query.explain = true;
  query.items[0]->request_id = "why-0";
  query.items[1]->request_id = "why-1";
  query.items[1]->exclude = {"e1"};
  const auto got = s.put(query);
  REQUIRE(got);
  REQUIRE(got->choices.size() == 2);
  const auto& whole = *got->choices[0];
  CHECK(whole.instance == "e1");
  CHECK(whole.engines == 2);
  CHECK(whole.considered == 2);
  REQUIRE(whole.candidates.size() == 2);
  for (const auto& candidate : whole.candidates) {
    CHECK(candidate->filtered_by.empty());
    double total = 0;
    for (const auto& score : candidate->scores) total += score->value * score->weight;
    CHECK(candidate->scores.size() == 4);
    CHECK(candidate->total == doctest::Approx(total));
  }
  const auto& without = *got->choices[1];
  CHECK(without.instance == "e0");
  CHECK(without.considered == 1);
  REQUIRE(without.candidates.size() == 2);
  CHECK(without.candidates[1]->instance == "e1");
  CHECK(without.candidates[1]->filtered_by == "excluded after failing it");
  // Asked again it predicts and counts as before: nothing was routed. A decision that is, is published behind it.
  const auto again = s.put(query);
  REQUIRE(again);
  CHECK(again->choices[0]->candidates[0]->predicted_blocks == whole.candidates[0]->predicted_blocks);
  CHECK(again->choices[0]->candidates[0]->total == whole.candidates[0]->total);
  CHECK(again->choices[1]->candidates[0]->predicted_blocks == without.candidates[0]->predicted_blocks);
  CHECK(watched == 0);
}

std::string config_of(const std::string& scorer, double weight) {
  return "apiVersion: llm-d.ai/v1\n"
         "kind: EndpointPickerConfig\n"
         "plugins:\n"
         "- type: " +
         scorer +
         "\n"
         "schedulingProfiles:\n"
         "- plugins: [{pluginRef: " +
         scorer + ", weight: " + std::to_string(weight) + "}]\n";
}

TEST_CASE("a policy's file is followed: what is right is used from the next decision on, what is wrong is not") {
  char pattern[] = "/tmp/infernex-policy-XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  const auto file = folder + "/picker.yaml";
  const auto write = [&](const std::string& text) {
    // As editors and config maps do it: never half of it is there.
    std::ofstream(folder + "/next") << text;
    std::filesystem::rename(folder + "/next", file);
  };
  write(config_of("waiting-scorer", 2));
  auto how = without_predictions();
  auto read = router::load_picker_config(file);
  REQUIRE(read.spec);
  how.policy.config = *read.spec;
  how.policy.source = router::policy_source{file, read.stamp, {}};
  setup s(how);
  REQUIRE(eventually([&] { return s.ready(); }));
  /// `scorer x weight` of the present policy.
  const auto scorer = [&]() -> std::string {
    const auto got = s.ask();
    if (!got || got->choices[0]->candidates.empty()) return {};
    CHECK(got->choices[0]->strategy == "picker.yaml");
    const auto& scores = got->choices[0]->candidates[0]->scores;
    return scores.size() == 1 ? scores[0]->scorer + " x " + std::to_string(static_cast<int>(scores[0]->weight)) : "";
  };
  const auto reloads = [&](const std::string& result) {
    return s.metrics
        .counter("infernex_router_config_reloads_total",
                 "Times that a changed configuration file was read, and taken or refused", {{"result", result}})
        .Value();
  };
  CHECK(scorer() == "waiting-scorer x 2");
  write(config_of("in-flight-scorer", 5));
  CHECK(eventually([&] { return scorer() == "in-flight-scorer x 5"; }));
  CHECK(reloads("applied") == 1);
  CHECK(reloads("refused") == 0);
  write(config_of("in-flihgt-scorer", 1));
  CHECK(eventually([&] { return reloads("refused") == 1; }));
  CHECK(scorer() == "in-flight-scorer x 5");
  write(config_of("waiting-scorer", 3));
  CHECK(eventually([&] { return scorer() == "waiting-scorer x 3"; }));
  CHECK(reloads("applied") == 2);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace infernex
