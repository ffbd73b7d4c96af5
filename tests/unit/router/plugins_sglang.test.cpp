#include "tests/unit/router/peer_table.hpp"

namespace infernex::router {
namespace {

TEST_CASE("sglang cache-aware: by the index, any overlap counts; equally cached, the less loaded") {
  peer_table t(3);
  t.use({{"", "sglang-cache-aware-picker", {}}});
  t.in_flight(0, 1);
  t.in_flight(1, 5);
  t.in_flight(2, 3);
  CHECK(t.chosen() == "e0");
  t.found = {{"e1", 1}};
  CHECK(t.ranked() == "e1 e0 e2");
  t.found = {{"e1", 4}, {"e2", 4}};
  CHECK(t.ranked() == "e2 e1 e0");
  // With an index that knows, predictions do not count.
  t.predicted = {{"e0", 10}};
  CHECK(t.chosen() == "e2");
  CHECK(t.by->uses_cache());
  CHECK(t.decide().reason == "test: e2 holds 4 of 10 blocks, kv not measured, waiting not measured, in flight 3");
}

TEST_CASE("sglang cache-aware: without an index, predictions of more than the threshold") {
  peer_table t(3);
  t.use({{"", "sglang-cache-aware-picker", {}}});
  t.index_known = false;
  t.in_flight(1, 5);
  t.in_flight(2, 1);
  t.predicted = {{"e1", 5}};
  CHECK(t.chosen() == "e0");
  t.predicted = {{"e1", 6}};
  CHECK(t.chosen() == "e1");
  t.use({{"", "sglang-cache-aware-picker", {{"cacheThreshold", 0.6}}}});
  CHECK(t.chosen() == "e0");
}

TEST_CASE("sglang cache-aware: unbalanced loads come before the cache") {
  struct row {
    std::uint32_t least, most;
    bool unbalanced;
  };
  // More than 32 apart, and more than 1.1 times.
  for (const auto& r : {row{0, 32, false}, row{0, 33, true}, row{400, 433, false}, row{300, 333, true}}) {
    peer_table t(2);
    t.use({{"", "sglang-cache-aware-picker", {}}});
    t.in_flight(0, r.least);
    t.in_flight(1, r.most);
    t.found = {{"e1", 10}};
    CHECK(t.chosen() == (r.unbalanced ? "e0" : "e1"));
  }
  peer_table t(2);
  t.use({{"", "sglang-cache-aware-picker", {{"balanceAbsThreshold", 4}, {"balanceRelThreshold", 3.0}}}});
  t.found = {{"e1", 10}};
  t.in_flight(0, 3);
  t.in_flight(1, 9);
  CHECK(t.chosen() == "e1");
  t.in_flight(1, 10);
  CHECK(t.chosen() == "e0");
}

TEST_CASE("sglang cache-aware: KV usage that differs too much, or is too high, where that is asked for") {
  peer_table t(2);
  t.found = {{"e1", 10}};
  t.in_flight(1, 1);
  t.measured(0, 0, 0, 0.0);
  t.measured(1, 0, 0, 1.0);
  const auto chosen = [&](boost::json::object parameters) {
    t.use({{"", "sglang-cache-aware-picker", std::move(parameters)}});
    return t.chosen();
  };
  CHECK(chosen({}) == "e1");
  t.measured(0, 0, 0, 0.25);
  t.measured(1, 0, 0, 0.75);
  CHECK(chosen({{"kvSpreadThreshold", 0.5}}) == "e1");
  CHECK(chosen({{"kvSpreadThreshold", 0.4}}) == "e0");
  CHECK(chosen({{"kvOverloadThreshold", 0.75}}) == "e1");
  CHECK(chosen({{"kvOverloadThreshold", 0.7}}) == "e0");
  // One alone is no spread.
  t.measured(0, 0, 0, {});
  CHECK(chosen({{"kvSpreadThreshold", 0.1}}) == "e1");
}

TEST_CASE("sglang cache-aware: equal loads go to the one that got fewest from here") {
  peer_table t(3);
  t.use({{"", "sglang-cache-aware-picker", {}}});
  std::string order;
  for (int i = 0; i < 6; ++i) order += t.chosen();
  CHECK(order == "e0e1e2e0e1e2");
  t.in_flight(0, 1);
  order.clear();
  for (int i = 0; i < 4; ++i) order += t.chosen();
  CHECK(order == "e1e2e1e2");
  // A slot that another engine has now starts from 0.
  t.loads.release(t.of.endpoints[1].slot);
  t.of.endpoints[1].slot = *t.loads.acquire();
  CHECK(t.chosen() == "e1");
}

TEST_CASE("power of two: by KV usage if both have it, else by requests in flight") {
  peer_table t(2);
  t.use({{"", "power-of-two-picker", {}}});
  t.in_flight(1, 5);
  t.measured(0, 0, 0, 0.9);
  t.measured(1, 0, 0, 0.1);
  CHECK(t.chosen_times(50) == std::map<std::string, int>{{"e1", 50}});
  CHECK(t.ranked() == "e1 e0");
  t.measured(1, 0, 0, {});
  CHECK(t.chosen_times(50) == std::map<std::string, int>{{"e0", 50}});
}

TEST_CASE("power of two: two distinct ones are drawn") {
  peer_table t(3);
  t.use({{"", "power-of-two-picker", {}}}, 0);
  for (unsigned i : {0U, 1U, 2U}) t.in_flight(i, i);
  // Of three pairs, e0 wins two and e1 one.
  auto times = t.chosen_times(6'000);
  CHECK(times["e0"] == doctest::Approx(4'000).epsilon(0.05));
  CHECK(times["e1"] == doctest::Approx(2'000).epsilon(0.1));
  CHECK(times.count("e2") == 0);
  peer_table one(1);
  one.use({{"", "power-of-two-picker", {}}});
  CHECK(one.ranked() == "e0");
}

TEST_CASE("drain: seconds until the queue is prefilled, and a barrier as KV blocks run out") {
  peer_table t(4);
  t.use({{"", "least-load-drain-scorer", {}}, {"", "picker-min-random", {}}});
  t.in_flight(0, 2, 1'000);
  t.in_flight(1, 2, 1'000);
  t.in_flight(2, 3, 4'000);
  t.in_flight(3, 1, 500);
  learned_speed fast;
  fast.prefill_ms_a_token = 0.25F;
  t.learned(0, fast);
  t.measured(0, 1, 0, 0.5);
  t.measured(1, 1, 0, 0.2);
  CHECK(t.score("e0") == doctest::Approx(1'000 / 4'000.0 + 0.15));
  CHECK(t.score("e1") == doctest::Approx(1'000 / 2'000.0 + 0.15 * 0.2 / 0.8));
  // Those that report nothing: usual prompts at the mean of 4,000 and 2,000 tokens a second.
  CHECK(t.score("e2") == doctest::Approx(3 * 1'024 / 3'000.0));
  CHECK(t.score("e3") == doctest::Approx(1 * 1'024 / 3'000.0));
  CHECK(t.ranked() == "e3 e0 e1 e2");
  // One that reports, but no KV usage: the mean of 0.5 and 0.2.
  t.measured(3, 1, 0, {});
  CHECK(t.score("e3") == doctest::Approx(500 / 2'000.0 + 0.15 * 0.35 / 0.65));
  t.measured(1, 1, 0, 1.0);
  CHECK(t.score("e1") == doctest::Approx(0.5 + 0.15 * 999));
  t.use({{"", "least-load-drain-scorer", {{"fallbackThroughput", 500}, {"kvBarrier", 1}, {"meanPrefillTokens", 100}}}});
  CHECK(t.score("e3") == doctest::Approx(500 / 500.0 + 0.75 / 0.25));
  CHECK(t.score("e2") == doctest::Approx(3 * 100 / ((4'000 + 500 + 500) / 3.0)));
}

TEST_CASE("drain: a fleet that reports nothing is taken by the shortest queue") {
  peer_table t(3);
  policy how;
  how.strategy = "smg-least-load";
  t.by = make_scheduler(spec_of(how));
  t.in_flight(0, 4, 10);
  t.in_flight(1, 2, 9'000);
  t.in_flight(2, 3, 20);
  CHECK(t.score("e1") == 2);
  CHECK(t.ranked() == "e1 e2 e0");
}

TEST_CASE("the other strategies of SGLang") {
  for (const auto* name : {"sglang-cache-aware", "power-of-two", "consistent-hashing", "prefix-hash"}) {
    peer_table t(2);
    policy how;
    how.strategy = name;
    t.by = make_scheduler(spec_of(how));
    CHECK(t.by->name() == name);
    CHECK(t.by->uses_cache() == (name == std::string_view("sglang-cache-aware")));
    CHECK_FALSE(t.chosen().empty());
  }
}

}  // namespace
}  // namespace infernex::router
