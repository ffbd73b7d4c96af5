#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "actors/router/scheduler.hpp"
#include "tests/unit/router/plugin_fixture.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using header = std::pair<std::string_view, std::string_view>;
constexpr clock_point now{1'000s};

TEST_CASE("kv-cache-aware costs: what is not cached, KV usage, requests waiting") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  b.request.blocks = 10;
  b.all[0].held_blocks = 10;
  b.all[0].load.kv_usage = 0.5;
  b.all[0].load.waiting = 2;
  b.all[1].held_blocks = 4;
  b.all[1].load.kv_usage = 0.25;
  b.all[1].load.waiting = 0;
  b.all[2].load.waiting = 1;
  check_scores(b.score("scorer-aggregate-kv-cache-aware"), {0 + 0.5 + 2, 0.6 + 0.25 + 0, not_measured});
  const std::string weights =
      R"({"kvCacheHitNotRateWeight": 2, "xpuCacheUsageWeight": 4, "waitingRequestWeight": 0.5,
          "kvCacheManagerIP": "cache-indexer-service", "kvCacheManagerPort": 8080,
          "kvCacheManagerPath": "/match_sort", "kvCacheManagerTimeout": 5000000000})";
  check_scores(b.score("scorer-aggregate-kv-cache-aware", weights), {0 + 2 + 1, 1.2 + 1 + 0, not_measured});
  // A decode engine gets the blocks from the prefill engine.
  check_scores(b.score("scorer-pd-kv-cache-aware", weights), {2 + 1, 1 + 0, not_measured});
  b.leg = serving_leg::prefill;
  check_scores(b.score("scorer-pd-kv-cache-aware", weights), {0 + 2 + 1, 1.2 + 1 + 0, not_measured});
  b.request.blocks = 0;
  check_scores(b.score("scorer-pd-kv-cache-aware"), {1 + 0.5 + 2, 1 + 0.25 + 0, not_measured});
  CHECK(refused("scorer-aggregate-kv-cache-aware", R"({"kvCacheHitRateWeight": 1})").find("kvCacheHitNotRateWeight") !=
        std::string::npos);
}

TEST_CASE("the pickers of costs take the least, a random one of equals") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  for (const auto* type : {"picker-min-random", "picker-pd-kv-cache-aware"}) {
    const auto by = make_plugin<picker>(type);
    const std::vector<double> costs{0.5, 2, 0.5};
    std::set<std::uint32_t> first;
    for (int i = 0; i < 50; ++i) {
      std::vector<std::uint32_t> order;
      by->pick(b.context(), b.all, costs, 3, order);
      REQUIRE(order.size() == 3);
      first.insert(order.front());
    }
    CHECK(first == std::set<std::uint32_t>{0, 2});
  }
}

TEST_CASE("filter-by-pd-label: roles and whole groups, by label or as announced") {
  plugin_bench b;
  b.add("p1", roles::Prefill, "g1");
  b.add("d1", roles::Decode, "g1");
  b.add("half", roles::Prefill, "g2");
  b.add("both");
  const auto labelled = [&](std::string name, std::string role, std::string group) {
    b.add(name).labels = {{"openfuyao.com/pdGroupID", group}, {"openfuyao.com/pdRole", role}};
  };
  labelled("p3", "prefill", "g3");
  labelled("lead3", "leader", "g3");
  labelled("agg", "aggregate", "");
  CHECK(make_plugin<filter>("filter-by-pd-label")->by_role());
  CHECK(b.kept("filter-by-pd-label") == "d1 both lead3 agg ");
  b.leg = serving_leg::prefill;
  CHECK(b.kept("filter-by-pd-label") == "p1 p3 ");
  const auto lead3 = b.all[5];
  b.partner = &lead3;
  CHECK(b.kept("filter-by-pd-label") == "p3 ");
  b.leg = serving_leg::decode;
  const auto p1 = b.all[0];
  b.partner = &p1;
  CHECK(b.kept("filter-by-pd-label") == "d1 ");
  b.partner = nullptr;
  b.add("mine").labels = {{"kind", "dec"}, {"set", "s"}};
  CHECK(b.kept("filter-by-pd-label", R"({"pdLabelName": "kind", "pdGroupLabelName": "set", "decodeValue": "dec"})") ==
        "d1 both p3 lead3 agg mine ");  // the usual labels say nothing then
  CHECK(refused("filter-by-pd-label", R"({"pdLabelNames": "x"})").find("pdLabelName") != std::string::npos);
}

/// A file of openFuyao's: plugins as named, all in one profile in this order.
struct one_profile {
  load_board loads{16};
  model_endpoints of{"m", {}};
  placement request;
  std::vector<overlap> found;
  std::unique_ptr<scheduler> by;

  explicit one_profile(const std::vector<scheduler_spec::plugin>& plugins) {
    scheduler_spec spec;
    spec.name = "openfuyao";
    spec.plugins = plugins;
    spec.profiles.push_back({"default", {}});
    for (const auto& p : plugins) spec.profiles.front().plugins.push_back({p.type, 1});
    std::vector<spec_problem> problems;
    by = scheduler::make(spec, problems);
    REQUIRE_MESSAGE(by, (problems.front().path + ": " + problems.front().message));
    request.block_size = 16;
    request.blocks = 10;
    request.prompt_tokens = 160;
  }
  endpoint& add(std::string name, roles role, std::string group, double kv = 0.0, std::uint64_t tokens = 0) {
    endpoint e;
    e.instance = std::move(name);
    e.url = "http://" + e.instance + ":8000";
    e.role = role;
    e.group = std::move(group);
    e.state = fb::EngineState::Ready;
    e.slot = *loads.acquire();
    loads.report(e.slot, 0, 0, kv, now);
    loads.set_remote(e.slot, {0, tokens});
    return of.endpoints.emplace_back(std::move(e));
  }
  /// `decode prefill`.
  std::string chosen() {
    const auto& d = by->decide(request, &of, loads, {true, "", found, {}}, now);
    std::string names = d.serving.ranked.empty() ? "nobody" : d.serving.ranked.front().to->instance;
    if (!d.prefill.ranked.empty()) names += " " + d.prefill.ranked.front().to->instance;
    return names;
  }
};

const std::vector<scheduler_spec::plugin> kv_aware{{"", "filter-by-pd-label", {}},
                                                   {"", "scorer-pd-kv-cache-aware", {}},
                                                   {"", "picker-pd-kv-cache-aware", {}},
                                                   {"", "pd-header-handler", {}}};

TEST_CASE("pd-kv-cache-aware: the prefill engine by cache, then the freest decode engine of its group") {
  one_profile f(kv_aware);
  f.add("d1", roles::Decode, "g1", 0.1);
  f.add("d2a", roles::Decode, "g2", 0.6);
  f.add("d2b", roles::Decode, "g2", 0.4);
  f.add("p1", roles::Prefill, "g1");
  f.add("p2", roles::Prefill, "g2");
  f.found = {{"p2", 8}};
  for (int i = 0; i < 5; ++i) CHECK(f.chosen() == "d2b p2");
  SUBCASE("the request's header names the prefill engine") {
    const std::vector<header> headers{{"x-prefiller-host-port", "p1:8000"}};
    f.request.headers = headers;
    CHECK(f.chosen() == "d1 p1");
    const std::vector<header> unknown{{"x-prefiller-host-port", "p9:8000"}};
    f.request.headers = unknown;
    CHECK(f.chosen() == "d2b p2");
  }
  SUBCASE("a group without a decode engine is none") {
    f.of.endpoints[1].state = f.of.endpoints[2].state = fb::EngineState::Down;
    CHECK(f.chosen() == "d1 p1");
  }
  SUBCASE("a group by label only") {
    for (auto& e : f.of.endpoints) {
      e.labels = {{"openfuyao.com/pdGroupID", e.group}};
      e.group.clear();
    }
    for (int i = 0; i < 5; ++i) CHECK(f.chosen() == "d2b p2");
  }
  SUBCASE("no prefill engine is left: a decode engine does it all") {
    f.of.endpoints[3].state = f.of.endpoints[4].state = fb::EngineState::Down;
    CHECK(f.chosen() == "d1");
  }
}

TEST_CASE("pd-header-handler goes by the filter's own names of labels, though the engines announce nothing of it") {
  auto plugins = kv_aware;
  plugins[0].parameters = {
      {"pdLabelName", "work"}, {"pdGroupLabelName", "team"}, {"prefillValue", "P"}, {"decodeValue", "D"}};
  one_profile f(plugins);
  f.add("d1", roles::Aggregated, "", 0.1);
  f.add("d2", roles::Aggregated, "", 0.6);
  f.add("p1", roles::Aggregated, "");
  f.add("p2", roles::Aggregated, "");
  for (auto& e : f.of.endpoints)
    e.labels = {{"team", e.instance.substr(1)}, {"work", e.instance[0] == 'd' ? "D" : "P"}};
  f.found = {{"p2", 8}};
  CHECK(f.chosen() == "d2 p2");
  f.of.endpoints[3].state = fb::EngineState::Down;
  CHECK(f.chosen() == "d1 p1");
}

TEST_CASE("pd-header-handler without a filter by label: by announced roles, pairs stay whole") {
  one_profile f({{"", "scorer-pd-kv-cache-aware", {}}, {"", "picker-min-random", {}}, {"", "pd-header-handler", {}}});
  f.add("d1", roles::Decode, "g1");
  f.add("p1", roles::Prefill, "g1");
  f.add("p2", roles::Prefill, "g2");
  CHECK((f.chosen() == "d1 p1"));
  f.found = {{"p2", 10}};  // cached where nobody answers
  CHECK(f.chosen() == "d1 p1");
  f.add("z", roles::Aggregated, "");
  f.of.endpoints[0].state = fb::EngineState::Down;
  CHECK(f.chosen() == "z");
}

TEST_CASE("random PD: any whole pair, never one across groups") {
  one_profile f({{"", "filter-by-pd-label", {}}, {"", "random-picker", {}}, {"", "pd-header-handler", {}}});
  for (const auto* g : {"1", "2"})
    for (const auto* n : {"a", "b"}) {
      f.add(std::string("d") + g + n, roles::Decode, g);
      f.add(std::string("p") + g + n, roles::Prefill, g);
    }
  std::sort(f.of.endpoints.begin(), f.of.endpoints.end(),
            [](const endpoint& a, const endpoint& b) { return a.instance < b.instance; });
  std::set<std::string> pairs;
  for (int i = 0; i < 200; ++i) pairs.insert(f.chosen());
  CHECK(pairs ==
        std::set<std::string>{"d1a p1a", "d1a p1b", "d1b p1a", "d1b p1b", "d2a p2a", "d2a p2b", "d2b p2a", "d2b p2b"});
}

TEST_CASE("openFuyao's pd-bucket file loads as it is and routes") {
  one_profile f(
      {{"",
        "filter-by-pd-label",
        {{"pdLabelName", "openfuyao.com/pdRole"},
         {"pdGroupLabelName", "openfuyao.com/pdGroupID"},
         {"prefillValue", "prefill"},
         {"decodeValue", "decode"},
         {"leaderValue", "leader"}}},
       {"", "scorer-pd-bucket", {{"alpha", 1.0}, {"beta", 2.0}, {"decayFactor", 0.99}, {"bucketSeperateLength", 200}}},
       {"", "pd-header-handler", {}}});
  f.add("d1", roles::Decode, "g1", 0.9);
  f.add("d2", roles::Decode, "g2", 0.1);
  f.add("p1", roles::Prefill, "g1", 0, 4'000);
  f.add("p2", roles::Prefill, "g2");
  for (const auto tokens : {10U, 199U}) {
    f.request.prompt_tokens = tokens;
    CHECK(f.chosen() == "d1 p1");
  }
  for (const auto tokens : {200U, 50'000U}) {
    f.request.prompt_tokens = tokens;
    CHECK(f.chosen() == "d2 p2");
  }
}

}  // namespace
}  // namespace infernex::router
