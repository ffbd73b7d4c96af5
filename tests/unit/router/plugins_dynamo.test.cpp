#include <cmath>

#include "tests/unit/router/peer_table.hpp"

namespace infernex::router {
namespace {

TEST_CASE("dynamo cost: prefill queue, prompt, cached blocks by tier, and decode blocks") {
  peer_table t(3);
  t.use({{"", "dynamo-cost-scorer", {}}, {"", "dynamo-softmax-picker", {}}});
  t.in_flight(0, 2, 320, 30);  // 20 blocks to prefill, 30 to decode
  t.in_flight(1, 1, 0, 50);
  // 4 on the device, 2 more on the host, 4 more on disk.
  t.found = {{"e0", 10, 4, 6}, {"e1", 8, 8, 8}};
  CHECK(t.score("e0") == doctest::Approx((20 + 10 - (4 + 0.75 * 2 + 0.25 * 4)) + (30 + 10)));
  CHECK(t.score("e1") == doctest::Approx((0 + 10 - 8) + (50 + 10)));
  CHECK(t.score("e2") == doctest::Approx(10 + 10));
  CHECK(t.ranked() == "e2 e1 e0");
  // More than there is to prefill is not credited.
  t.found = {{"e2", 10, 10, 10}};
  t.request.prompt_tokens = 150;
  CHECK(t.score("e2") == doctest::Approx(10));
}

TEST_CASE("dynamo cost: each knob") {
  peer_table t(2);
  t.in_flight(0, 3, 160, 5);
  t.found = {{"e0", 9, 4, 6}};
  const auto cost = [&](boost::json::object parameters) {
    t.use({{"", "dynamo-cost-scorer", std::move(parameters)}, {"", "dynamo-softmax-picker", {}}});
    return t.score("e0");
  };
  const double credit = 4 + 0.75 * 2 + 0.25 * 3;
  CHECK(cost({}) == doctest::Approx(20 - credit + 15));
  CHECK(cost({{"overlapScoreCredit", 2.0}}) == doctest::Approx(20 - (credit + 4) + 15));
  CHECK(cost({{"prefillLoadScale", 0.5}}) == doctest::Approx(0.5 * (20 - credit) + 15));
  CHECK(cost({{"hostCacheHitWeight", 1.0}}) == doctest::Approx(20 - (credit + 0.5) + 15));
  CHECK(cost({{"diskCacheHitWeight", 0.0}}) == doctest::Approx(20 - (credit - 0.75) + 15));
  CHECK(cost({{"decodeActiveRequestWeight", 2.0}}) == doctest::Approx(20 - credit + 15 + 2 * 3));
  // The queue is 10 blocks beyond the least, the prompt 10 blocks: the device's credit is 1 / (1 + 0.5 * 10 / 10).
  CHECK(cost({{"overlapScoreCreditDecay", 0.5}}) == doctest::Approx(20 - (4 / 1.5 + 1.5 + 0.75) + 15));
  CHECK(cost({{"trackPrefillTokens", false}}) == doctest::Approx(10 - credit + 15));
  CHECK(cost({{"trackPrefillTokens", false}, {"overlapScoreCreditDecay", 0.5}}) == doctest::Approx(10 - credit + 15));
  CHECK(cost({{"routerSelectionPolicy", "lmetric"}}) == doctest::Approx((20 - credit) * (15 + 1)));
  CHECK(cost({{"sharedCacheMultiplier", 0.9}}) == doctest::Approx(20 - credit + 15));
}

TEST_CASE("dynamo cost: a prediction counts as cached on the device; a credit of 0 asks no index") {
  peer_table t(1);
  t.use({{"", "dynamo-cost-scorer", {}}});
  t.found = {{"e0", 8, 2, 4}};
  t.predicted = {{"e0", 6}};
  CHECK(t.score("e0") == doctest::Approx(10 - (6 + 0.25 * 2) + 10));
  t.predicted = {{"e0", 9}};
  CHECK(t.score("e0") == doctest::Approx(10 - 9 + 10));
  CHECK(t.by->uses_cache());
  t.use({{"", "dynamo-cost-scorer", {{"overlapScoreCredit", 0}}}});
  CHECK_FALSE(t.by->uses_cache());
  CHECK(t.score("e0") == doctest::Approx(20));
}

TEST_CASE("dynamo cost: a decode engine without prefill tracking counts decode blocks less those cached") {
  peer_table t(0);
  t.add("d0", fb::EngineRole::Decode);
  t.in_flight(0, 2, 640, 7);
  t.found = {{"d0", 6}};
  scheduler_spec spec;
  spec.plugins = {{"", "dynamo-cost-scorer", {{"trackPrefillTokens", false}, {"decodeActiveRequestWeight", 0.5}}},
                  {"", "disagg-profile-handler", {{"profiles", {{"decode", "only"}, {"prefill", "only"}}}}}};
  spec.profiles = {{"only", {{"dynamo-cost-scorer"}}}};
  t.by = make_scheduler(spec);
  CHECK(t.score("d0") == doctest::Approx(7 + 10 - 6 + 0.5 * 2));
}

TEST_CASE("dynamo cost: block and prompt lengths that are not known") {
  peer_table t(1);
  t.use({{"", "dynamo-cost-scorer", {}}});
  t.in_flight(0, 1, 32, 0);
  t.request.block_size = 0;
  CHECK(t.score("e0") == doctest::Approx(2 + 10 + 10));
  // No count, no bytes: its cacheable blocks are what is known of the prompt.
  t.request.prompt_tokens.reset();
  t.found = {{"e0", 4}};
  CHECK(t.score("e0") == doctest::Approx(2 + 10 - 4 + 10));
  t.request.blocks = 0;
  CHECK(t.score("e0") == doctest::Approx(2));
}

TEST_CASE("dynamo picker: the least cost, any of equal ones") {
  peer_table t(4);
  t.use({{"", "dynamo-cost-scorer", {}}, {"", "dynamo-softmax-picker", {}}}, 0);
  t.in_flight(2, 1, 160, 10);
  const auto times = t.chosen_times(300);
  CHECK(times.size() == 3);
  for (const auto& [engine, n] : times) {
    CHECK(engine != "e2");
    CHECK(n > 60);
  }
}

TEST_CASE("dynamo picker: by softmax of the cost between the least and the most") {
  peer_table t(3);
  t.use({{"", "dynamo-cost-scorer", {}}, {"", "dynamo-softmax-picker", {{"temperature", 0.5}}}}, 1);
  t.in_flight(0, 0, 0, 0);
  t.in_flight(1, 1, 0, 5);
  t.in_flight(2, 1, 0, 10);
  // exp(0), exp(-0.5 / 0.5), exp(-1 / 0.5): whatever the unit of the costs.
  const double sum = 1 + std::exp(-1) + std::exp(-2);
  const int decisions = 20'000;
  auto times = t.chosen_times(decisions);
  CHECK(times["e0"] == doctest::Approx(decisions / sum).epsilon(0.05));
  CHECK(times["e1"] == doctest::Approx(decisions * std::exp(-1) / sum).epsilon(0.05));
  CHECK(times["e2"] == doctest::Approx(decisions * std::exp(-2) / sum).epsilon(0.1));
  // Whoever is drawn, the others follow by cost.
  for (int i = 0; i < 100; ++i) {
    const auto& d = t.decide();
    REQUIRE(d.serving.ranked.size() == 2);
    CHECK(d.serving.ranked[1].to->instance == (d.serving.ranked[0].to->instance == "e0" ? "e1" : "e0"));
  }
  t.in_flight(1, 0, 0, 0);
  t.in_flight(2, 0, 0, 0);
  for (const auto& [engine, n] : t.chosen_times(3'000)) CHECK(n == doctest::Approx(1'000).epsilon(0.15));
}

TEST_CASE("dynamo: the strategy") {
  peer_table t(2);
  policy how;
  how.strategy = "dynamo";
  t.by = make_scheduler(spec_of(how));
  t.in_flight(0, 0, 0, 0);
  t.in_flight(1, 1, 0, 5);
  CHECK(t.chosen() == "e0");
  t.found = {{"e1", 6}};
  CHECK(t.chosen() == "e1");
  CHECK(uses_cache(how));
}

}  // namespace
}  // namespace infernex::router
