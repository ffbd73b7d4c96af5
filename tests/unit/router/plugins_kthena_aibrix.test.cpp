#include <boost/json/parse.hpp>

#include "tests/unit/router/peer_table.hpp"

namespace infernex::router {
namespace {

TEST_CASE("kthena least-request filter: fewer than ten waiting, or not measured") {
  peer_table t(3);
  t.use({{"", "least-request-filter", {}}});
  t.measured(0, 0, 10);
  t.measured(1, 0, 9);
  const auto left = t.chosen_times(20);
  CHECK(left == std::map<std::string, int>{{"e1", 10}, {"e2", 10}});
  t.use({{"", "least-request-filter", {{"maxWaitingRequests", 9}}}});
  CHECK(t.ranked() == "e2");
  t.measured(2, 0, 100);
  CHECK(t.decide().reason == "no engine of model m can take this request: 3 filtered out");
}

TEST_CASE("kthena least-request: in flight, and a hundredfold what the engine does not run") {
  peer_table t(4);
  t.use({{"", "least-request-scorer", {}}});
  CHECK(t.score("e0") == 1);
  t.in_flight(0, 5);
  t.in_flight(1, 4);
  t.in_flight(2, 0);
  t.in_flight(3, 2);
  // Nothing measured: by requests in flight.
  CHECK(t.score("e0") == 0);
  CHECK(t.score("e1") == doctest::Approx(1 / 5.0));
  CHECK(t.score("e2") == 1);
  t.measured(0, 3, 0);  // 5 + 100 * 2
  t.measured(1, 4, 0);  // 4
  t.measured(2, 2, 0);  // 0: others' requests do not count
  CHECK(t.score("e0") == 0);
  CHECK(t.score("e1") == doctest::Approx((205 - 4) / 205.0));
  CHECK(t.score("e2") == 1);
  CHECK(t.score("e3") == doctest::Approx((0 + 201 / 205.0 + 1) / 3));
}

TEST_CASE("kthena least-latency: time to first token and per output token, each between the best and the worst") {
  peer_table t(4);
  const auto speed = [](std::optional<float> ttft, std::optional<float> tpot) {
    learned_speed s;
    s.ttft_ms = ttft;
    s.tpot_ms = tpot;
    return s;
  };
  t.learned(0, speed(100.0F, 10.0F));
  t.learned(1, speed(200.0F, 30.0F));
  t.learned(2, speed(300.0F, std::nullopt));
  t.use({{"", "least-latency-scorer", {}}});
  CHECK(t.score("e0") == doctest::Approx(1));
  CHECK(t.score("e1") == doctest::Approx(0.5 * 0.5 + 0.5 * 0));
  CHECK(t.score("e2") == doctest::Approx(0.5 * 0 + 0.5 * 0.5));
  CHECK(t.score("e3") == doctest::Approx(0.5));
  t.use({{"", "least-latency-scorer", {{"TTFTTPOTWeightFactor", 0.8}}}});
  CHECK(t.score("e1") == doctest::Approx(0.8 * 0.5));
  CHECK(t.score("e2") == doctest::Approx(0.2 * 0.5));
  // All the same is the best; nothing is not 0 ms.
  for (unsigned i : {0U, 1U, 2U}) t.learned(i, speed(50.0F, 0.0F));
  CHECK(t.score("e2") == doctest::Approx(0.8 * 1 + 0.2 * 0.5));
}

TEST_CASE("kthena gpu-usage: free KV blocks, under AIBrix's name too") {
  for (const auto* name : {"gpu-usage-scorer", "least-kv-cache-scorer"}) {
    peer_table t(3);
    t.use({{"", name, {}}});
    t.measured(0, 0, 0, 0.3);
    t.measured(1, 0, 0, 0.9);
    CHECK(t.score("e0") == doctest::Approx(0.7));
    CHECK(t.score("e1") == doctest::Approx(0.1));
    CHECK(t.score("e2") == doctest::Approx(0.4));
  }
}

TEST_CASE("kthena: the strategy adds up its three scorers behind its filter") {
  peer_table t(3);
  policy how;
  how.strategy = "kthena";
  t.by = make_scheduler(spec_of(how));
  t.in_flight(0, 2);
  t.in_flight(1, 4);
  t.found = {{"e1", 10, 0, 0}, {"e2", 10}};
  t.measured(2, 0, 10);
  const auto& d = t.decide();
  REQUIRE(d.serving.ranked.size() == 2);
  // e1: 0 + 0.5 + 1 (on disk, but cached); e0: 0.5 + 0.5 + 0. Only e2, dropped, has its running requests measured.
  CHECK(d.serving.ranked[0].to->instance == "e1");
  CHECK(d.serving.ranked[0].total == doctest::Approx(1.5));
  CHECK(d.serving.ranked[1].total == doctest::Approx(1.0));
}

TEST_CASE("aibrix prefix-cache: the longest match, then the fewest in flight") {
  peer_table t(3);
  t.use({{"", "aibrix-prefix-cache-picker", {}}});
  t.in_flight(0, 1);
  t.in_flight(1, 2);
  t.in_flight(2, 1);
  t.found = {{"e0", 4}, {"e1", 8}, {"e2", 7}};
  CHECK(t.chosen() == "e2");  // e1: 2 > 1.33 + 0.47
  t.in_flight(1, 1);
  CHECK(t.ranked() == "e1 e2 e0");
  t.in_flight(0, 0);
  t.found = {{"e0", 8}, {"e1", 8}};
  CHECK(t.chosen() == "e0");
  t.predicted = {{"e2", 9}};
  t.in_flight(0, 1);
  CHECK(t.chosen() == "e2");
}

TEST_CASE("aibrix prefix-cache: at most the mean and a standard deviation in flight") {
  peer_table t(3);
  t.in_flight(2, 6);
  t.found = {{"e0", 1}, {"e2", 10}};
  // Mean 2, deviation sqrt((4 + 4 + 16) / 3) = 2.83.
  t.use({{"", "aibrix-prefix-cache-picker", {}}});
  CHECK(t.ranked() == "e0 e1 e2");
  t.use({{"", "aibrix-prefix-cache-picker", {{"standardDeviationFactor", 1.4}}}});
  CHECK(t.chosen() == "e0");  // 5.96
  t.use({{"", "aibrix-prefix-cache-picker", {{"standardDeviationFactor", 1.5}}}});
  CHECK(t.chosen() == "e2");  // 6.24
}

TEST_CASE("aibrix prefix-cache: without a match the fewest in flight; unbalanced, only those") {
  peer_table t(3);
  t.use({{"", "aibrix-prefix-cache-picker", {}}});
  t.in_flight(2, 1);
  const auto times = t.chosen_times(200);
  CHECK(times.size() == 2);
  CHECK(times.count("e2") == 0);
  // e1 is below the mean and its deviation, but 9 apart is more than 8: only e0 is left.
  t.in_flight(1, 1);
  t.in_flight(2, 9);
  t.found = {{"e1", 10}};
  CHECK(t.chosen() == "e0");
  t.in_flight(2, 8);
  CHECK(t.chosen() == "e1");
  t.use({{"", "aibrix-prefix-cache-picker", {{"imbalanceAbsCount", 7}}}});
  CHECK(t.chosen() == "e0");
}

struct length_table : peer_table {
  explicit length_table(std::string_view ranges = R"([{"group": "long", "min": 101}, {"group": "short", "max": 100}])")
      : peer_table(0) {
    add("d-long", fb::EngineRole::Decode, "long");
    add("d-short", fb::EngineRole::Decode, "short");
    add("p-long", fb::EngineRole::Prefill, "long");
    add("p-short", fb::EngineRole::Prefill, "short");
    scheduler_spec spec;
    spec.plugins = {{"", "pd-length-range-filter", {{"ranges", boost::json::parse(ranges)}}},
                    {"", "disagg-profile-handler", {}}};
    spec.profiles = {{"decode", {{"pd-length-range-filter"}}}, {"prefill", {{"pd-length-range-filter"}}}};
    by = make_scheduler(spec);
  }
  /// `d-short p-short`; without a prefill engine: `d-short`.
  std::string pair(std::uint32_t tokens) {
    request.prompt_tokens = tokens;
    const auto& d = decide();
    if (d.serving.ranked.empty()) return "";
    const auto& serving = d.serving.ranked.front().to->instance;
    return d.prefill.ranked.empty() ? serving : serving + " " + d.prefill.ranked.front().to->instance;
  }
};

TEST_CASE("aibrix pd: a group whose range the prompt is in") {
  length_table t;
  for (int i = 0; i < 4; ++i) {
    CHECK(t.pair(0) == "d-short p-short");
    CHECK(t.pair(100) == "d-short p-short");
    CHECK(t.pair(101) == "d-long p-long");
    CHECK(t.pair(2'000'000'000) == "d-long p-long");
  }
}

TEST_CASE("aibrix pd: no half pairs, and never another group's length") {
  length_table t;
  SUBCASE("its prefill engine is down") { t.of.endpoints[3].state = fb::EngineState::Down; }
  SUBCASE("its decode engine is down") { t.of.endpoints[1].state = fb::EngineState::Down; }
  CHECK(t.pair(50).empty());
  CHECK(t.pair(150) == "d-long p-long");
}

TEST_CASE("aibrix pd: an excluded engine, or one without the adapter, is no half either") {
  length_table t;
  const std::string_view failed[] = {"p-short"};
  t.request.exclude = failed;
  CHECK(t.pair(50).empty());
  t.request.exclude = {};
  CHECK(t.pair(50) == "d-short p-short");
  t.request.adapter = "lora";
  for (auto i : {0U, 1U, 2U}) t.of.endpoints[i].adapters = {"lora"};
  CHECK(t.pair(50).empty());
  CHECK(t.pair(150) == "d-long p-long");
}

TEST_CASE("aibrix pd: aggregated engines stand in only where their range says so") {
  for (const bool combined : {false, true}) {
    length_table t(combined ? R"([{"group": "long", "min": 101}, {"group": "short", "min": 10, "max": 100},
                                  {"max": 60, "combined": true}])"
                            : R"([{"group": "long", "min": 101}, {"group": "short", "min": 10, "max": 100},
                                  {"max": 60}])");
    t.add("x", fb::EngineRole::Aggregated);
    CHECK(t.pair(50) == "d-short p-short");
    CHECK(t.pair(5) == (combined ? "x" : ""));
    t.of.endpoints[3].state = fb::EngineState::Down;
    CHECK(t.pair(50) == (combined ? "x" : ""));
    CHECK(t.pair(61).empty());
  }
}

TEST_CASE("aibrix pd: a group without a range takes any length; a range upside down is refused") {
  length_table t(R"([{"group": "short", "max": 100}])");
  t.of.endpoints[1].state = fb::EngineState::Down;
  CHECK(t.pair(50) == "d-long p-long");
  CHECK(t.pair(5'000) == "d-long p-long");
  scheduler_spec spec;
  spec.plugins = {{"", "pd-length-range-filter", {{"ranges", boost::json::parse(R"([{"min": 9, "max": 8}])")}}}};
  spec.profiles = {{"default", {{"pd-length-range-filter"}}}};
  std::vector<spec_problem> problems;
  CHECK(scheduler::make(spec, problems) == nullptr);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].path == "plugins[0].parameters.ranges[0].min");
}

TEST_CASE("production-stack: cached share less what is busier than the mean") {
  peer_table t(3);
  policy how;
  how.strategy = "production-stack";
  t.by = make_scheduler(spec_of(how));
  t.found = {{"e0", 5}};
  t.in_flight(0, 4);
  t.in_flight(2, 2);
  CHECK(t.score("e0") == doctest::Approx(0.5 - (4 - 2) / 2.0));
  CHECK(t.score("e1") == doctest::Approx(1));
  CHECK(t.score("e2") == doctest::Approx(0));
  CHECK(t.ranked() == "e1 e2 e0");
  // A mean below 1 counts as 1.
  t.in_flight(0, 1);
  t.in_flight(2, 0);
  CHECK(t.score("e0") == doctest::Approx(0.5 - (1 - 1 / 3.0)));
  t.use({{"", "load-aware-prefix-scorer", {{"beta", 0.3}}}});
  CHECK(t.score("e0") == doctest::Approx(0.5 - 0.3 * 2 / 3.0));
  t.request.blocks = 0;
  CHECK(t.score("e0") == doctest::Approx(-0.3 * 2 / 3.0));
}

TEST_CASE("aibrix: the strategy") {
  peer_table t(2);
  policy how;
  how.strategy = "aibrix-prefix-cache";
  t.by = make_scheduler(spec_of(how));
  t.found = {{"e1", 1}};
  CHECK(t.by->uses_cache());
  CHECK(t.ranked() == "e1 e0");
}

}  // namespace
}  // namespace infernex::router
