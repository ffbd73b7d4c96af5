#include <map>

#include <doctest/doctest.h>

#include "actors/router/scheduler.hpp"
#include "tests/unit/router/plugin_fixture.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using header = std::pair<std::string_view, std::string_view>;

TEST_CASE("label-selector-filter: labels equal, and expressions") {
  plugin_bench b;
  b.add("a").labels = {{"gpu", "h100"}, {"tier", "gold"}};
  b.add("b").labels = {{"gpu", "a100"}};
  b.add("c");
  const auto kept = [&](std::string json) { return b.kept("label-selector-filter", json); };
  CHECK(kept("{}") == "a b c ");
  CHECK(kept(R"({"matchLabels": {"gpu": "h100"}})") == "a ");
  CHECK(kept(R"({"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100", "a100"]}]})") == "a b ");
  CHECK(kept(R"({"matchExpressions": [{"key": "gpu", "operator": "NotIn", "values": ["a100"]}]})") == "a c ");
  CHECK(kept(R"({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]})") == "a b ");
  CHECK(kept(R"({"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]})") == "c ");
  CHECK(kept(R"({"matchLabels": {"gpu": "a100"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]})") == "");
  CHECK(refused("label-selector-filter", R"({"matchExpressions": [{"key": "a", "operator": "Is"}]})") ==
        "parameters.matchExpressions[0].operator: one of In, NotIn, Exists, DoesNotExist, not \"Is\"");
  CHECK(refused("label-selector-filter", R"({"matchLabels": {"a": 3}})") ==
        "parameters.matchLabels: a mapping of texts");
  CHECK_FALSE(make_plugin<filter>("label-selector-filter", R"({"matchLabels": {"gpu": "h100"}})")->by_role());
  CHECK(make_plugin<filter>("label-selector-filter", R"({"matchLabels": {"llm-d.ai/role": "both"}})")->by_role());
}

TEST_CASE("prefill-filter and decode-filter: by label, else as announced") {
  plugin_bench b;
  b.add("p", roles::Prefill);
  b.add("d", roles::Decode);
  b.add("both");
  for (const auto* role : {"prefill", "decode", "prefill-decode", "both", "encode", "encode-prefill"})
    b.add(role).labels = {{"llm-d.ai/role", role}};
  CHECK(b.kept("prefill-filter") == "p prefill prefill-decode both encode-prefill ");
  CHECK(b.kept("decode-filter") == "d both decode prefill-decode both ");
  CHECK(make_plugin<filter>("decode-filter")->by_role());
}

TEST_CASE("utilization-filter: over a limit goes; not measured is not over; all over: as asked") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  b.all[0].load.in_flight = 5;
  b.all[0].load.running = 1;
  b.all[1].load.waiting = 9;
  b.all[1].load.kv_usage = 0.95;
  const auto kept = [&](std::string conditions, std::string more = "") {
    return b.kept("utilization-filter", R"({"conditions": [)" + conditions + "]" + more + "}");
  };
  CHECK(kept(R"({"metric": "active-requests", "maxValue": 4})") == "b c ");
  CHECK(kept(R"({"metric": "running-requests", "maxValue": 0.5})") == "b c ");
  CHECK(kept(R"({"metric": "waiting-queue", "maxValue": 9})") == "a b c ");
  CHECK(kept(R"({"metric": "waiting-queue", "maxValue": 8}, {"metric": "active-requests", "maxValue": 4})") == "c ");
  CHECK(kept(R"({"metric": "kv-cache-utilization", "maxValue": 0.9})") == "a c ");
  for (auto& c : b.all) c.load.in_flight = 9;
  CHECK(kept(R"({"metric": "active-requests", "maxValue": 4})") == "");
  CHECK(kept(R"({"metric": "active-requests", "maxValue": 4})", R"(, "fallbackOnEmpty": true)") == "a b c ");
}

TEST_CASE("prefix-cache-affinity-filter: sticky unless that would answer too much later") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  b.request.blocks = 10;
  b.request.block_size = 16;
  b.request.prompt_tokens = 160;
  const auto kept = [&](std::string json = "{}") { return b.kept("prefix-cache-affinity-filter", json); };
  CHECK(kept() == "a b c ");
  b.all[1].held_blocks = 8;
  b.all[2].held_blocks = 7;
  CHECK(kept() == "b ");
  CHECK(kept(R"({"affinityThreshold": 0.7})") == "b c ");
  CHECK(kept(R"({"affinityThreshold": 0})") == "a b c ");
  CHECK(kept(R"({"explorationProbability": 1})") == "a b c ");
  // 15928 tokens a second: 18 s are 286704 tokens.
  b.all[1].load.prefill_tokens = 286'704;
  CHECK(kept() == "b ");
  b.all[1].load.prefill_tokens = 286'705;
  CHECK(kept() == "a b c ");
  CHECK(kept(R"({"maxTTFTPenaltyMs": 0})") == "b ");
  CHECK(kept(R"({"peakPrefillThroughput": 100000})") == "b ");
  // Learned speeds: nothing known of one side is no reason to stick.
  const std::string learned = R"({"ttftSource": "latencyPredictor", "maxTTFTPenaltyMs": 100})";
  b.all[1].load.prefill_tokens = 400;
  b.all[1].load.speed.ttft_base_ms = 10;
  b.all[1].load.speed.prefill_ms_a_token = 0.5;
  CHECK(kept(learned) == "a b c ");
  // b: 10 + (400 + 32) * 0.5 = 226; c: 10 + 48 * 2 = 106 for it, then 130.
  b.all[2].load.speed.ttft_base_ms = 10;
  b.all[2].load.speed.prefill_ms_a_token = 2;
  CHECK(kept(learned) == "a b c ");
  b.all[2].load.speed.ttft_base_ms = 34;
  CHECK(kept(learned) == "b ");
}

TEST_CASE("weighted-random-picker: in proportion to the totals, zeros last") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  const auto by = make_plugin<picker>("weighted-random-picker", R"({"maxNumOfEndpoints": 1})");
  const std::vector<double> totals{1, 3, 0};
  std::map<std::uint32_t, int> times;
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 10'000; ++i) {
    order.clear();
    by->pick(b.context(), b.all, totals, 3, order);
    REQUIRE(order.size() == 3);
    ++times[order.front()];
    CHECK(order.back() == 2);
  }
  CHECK(times[0] == doctest::Approx(2'500).epsilon(0.1));
  CHECK(times[1] == doctest::Approx(7'500).epsilon(0.1));
  times.clear();
  const std::vector<double> none{0, 0, 0};
  for (int i = 0; i < 9'000; ++i) {
    order.clear();
    by->pick(b.context(), b.all, none, 1, order);
    REQUIRE(order.size() == 1);
    ++times[order.front()];
  }
  for (const auto& [who, often] : times) CHECK(often == doctest::Approx(3'000).epsilon(0.1));
  CHECK(times.size() == 3);
}

TEST_CASE("deciders: always; from so many tokens that are not cached") {
  plugin_bench b;
  b.add("d", roles::Decode);
  b.request.block_size = 16;
  b.request.prompt_tokens = 640;
  const auto says = [&](std::string_view type, std::string_view json = "{}") {
    return make_plugin<disaggregation_decider>(type, json)->disaggregate(b.context(), b.all[0]);
  };
  CHECK(says("always-disagg-pd-decider"));
  CHECK_FALSE(says("prefix-based-pd-decider"));
  CHECK(says("prefix-based-pd-decider", R"({"nonCachedTokens": 640})"));
  CHECK_FALSE(says("prefix-based-pd-decider", R"({"nonCachedTokens": 641})"));
  CHECK(says("prefix-based-pd-decider", R"({"nonCachedTokens": 1, "promptTokens": 640})"));
  CHECK_FALSE(says("prefix-based-pd-decider", R"({"nonCachedTokens": 1, "promptTokens": 641})"));
  b.all[0].held_blocks = 30;  // 160 tokens are left
  CHECK(says("prefix-based-pd-decider", R"({"nonCachedTokens": 160})"));
  CHECK_FALSE(says("prefix-based-pd-decider", R"({"nonCachedTokens": 161})"));
}

TEST_CASE("producers take any parameters and do nothing") {
  for (const auto* name :
       {"approx-prefix-cache-producer", "precise-prefix-cache-producer", "token-producer", "inflight-load-producer",
        "predicted-latency-producer", "session-id-producer", "metrics-data-source", "core-metrics-extractor"})
    CHECK_FALSE(make_plugin<producer>(name, R"({"anything": {"at": ["all"]}})")->uses_cache());
}

TEST_CASE("an unknown parameter is refused, with the nearest known one") {
  CHECK(refused("load-aware-scorer", R"({"treshold": 3})") ==
        "parameters.treshold: an unknown parameter (did you mean \"threshold\"?)");
  CHECK(refused("prefix-cache-scorer", R"({"matchLengthWeigth": 0})").find("matchLengthWeight") != std::string::npos);
  CHECK(refused("prefix-based-pd-decider", R"({"nonCachedToken": 1})").find("nonCachedTokens") != std::string::npos);
  CHECK_FALSE(refused("queue-scorer", R"({"zzz": 1})").empty());
}

/// A scheduler of an llm-d file, and engines to schedule on.
struct fleet_of {
  load_board loads{16};
  model_endpoints of{"m", {}};
  placement request;
  std::vector<overlap> found;
  std::unique_ptr<scheduler> by;

  explicit fleet_of(const scheduler_spec& spec) {
    std::vector<spec_problem> problems;
    by = scheduler::make(spec, problems);
    REQUIRE_MESSAGE(by, (problems.front().path + ": " + problems.front().message));
    request.block_size = 16;
    request.blocks = 10;
    request.prompt_tokens = 160;
  }
  void add(std::string name, roles role, std::string group) {
    endpoint e;
    e.instance = std::move(name);
    e.url = "http://" + e.instance + ":8000";
    e.role = role;
    e.group = std::move(group);
    e.state = fb::EngineState::Ready;
    e.slot = *loads.acquire();
    loads.report(e.slot, 0, 0, 0.0, clock_point{1'000s});
    of.endpoints.push_back(std::move(e));
  }
  const decision& decide() { return by->decide(request, &of, loads, {true, "", found, {}}, clock_point{1'000s}); }
};

TEST_CASE("llm-d's disaggregated file: decode by cache and load, then prefill of its group if enough is not cached") {
  scheduler_spec spec;
  spec.name = "llm-d";
  for (const auto* type : {"token-producer", "approx-prefix-cache-producer", "prefill-filter", "decode-filter",
                           "prefix-cache-scorer", "queue-scorer", "max-score-picker"})
    spec.plugins.push_back({"", type, {}});
  spec.plugins.push_back({"", "prefix-based-pd-decider", {{"nonCachedTokens", 100}}});
  spec.plugins.push_back({"", "disagg-profile-handler", {{"deciders", {{"prefill", "prefix-based-pd-decider"}}}}});
  spec.profiles.push_back({"prefill", {{"prefill-filter"}, {"prefix-cache-scorer", 2}, {"queue-scorer"}}});
  spec.profiles.push_back({"decode", {{"decode-filter"}, {"prefix-cache-scorer", 2}, {"queue-scorer"}}});
  fleet_of f(spec);
  f.add("d1", roles::Decode, "g1");
  f.add("d2", roles::Decode, "g2");
  f.add("p1", roles::Prefill, "g1");
  f.add("p2", roles::Prefill, "g2");
  f.found = {{"d2", 2}};
  const auto* d = &f.decide();
  REQUIRE(d->serving.ranked.size() == 2);
  CHECK(d->serving.ranked.front().to->instance == "d2");
  REQUIRE(d->prefill.ranked.size() == 1);
  CHECK(d->prefill.ranked.front().to->instance == "p2");
  f.found = {{"d2", 9}};
  d = &f.decide();
  CHECK(d->serving.ranked.front().to->instance == "d2");
  CHECK(d->prefill.ranked.empty());
}

TEST_CASE("header-profile-handler: the profile that the request names") {
  scheduler_spec spec;
  for (const auto* type : {"prefill-filter", "decode-filter", "header-profile-handler"})
    spec.plugins.push_back({"", type, {}});
  spec.profiles.push_back({"prefill", {{"prefill-filter"}}});
  spec.profiles.push_back({"decode", {{"decode-filter"}}});
  fleet_of f(spec);
  f.add("d", roles::Decode, "g");
  f.add("p", roles::Prefill, "g");
  CHECK(f.decide().serving.ranked.front().to->instance == "d");
  const std::vector<header> headers{{"epp-profile", "prefill"}};
  f.request.headers = headers;
  CHECK(f.decide().serving.ranked.front().to->instance == "p");
  const std::vector<header> unknown{{"epp-profile", "nothing"}};
  f.request.headers = unknown;
  CHECK(f.decide().serving.ranked.empty());
  CHECK(f.decide().reason == "no engine of model m can take this request: there is no profile of the name it asks for");
}

TEST_CASE("header-profile-handler: a profile that leaves nobody is the last word; the first stands in for none only") {
  const auto spec_with = [](std::string_view second) {
    scheduler_spec spec;
    for (const auto* type : {"prefill-filter", "decode-filter", "header-profile-handler"})
      spec.plugins.push_back({"", type, {}});
    spec.profiles.push_back({"prefill", {{"prefill-filter"}}});
    spec.profiles.push_back({std::string(second), {{"decode-filter"}}});
    return spec;
  };
  fleet_of with_default(spec_with("decode"));
  with_default.add("p", roles::Prefill, "g");
  CHECK(with_default.decide().serving.ranked.empty());
  CHECK(with_default.decide().reason == "no engine of model m can take this request: 1 filtered out");
  fleet_of without(spec_with("answers"));
  without.add("p", roles::Prefill, "g");
  REQUIRE(without.decide().serving.ranked.size() == 1);
}

}  // namespace
}  // namespace infernex::router
