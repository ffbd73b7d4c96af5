#include <doctest/doctest.h>

#include "tests/unit/router/plugin_fixture.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using header = std::pair<std::string_view, std::string_view>;

TEST_CASE("queue-scorer and running-requests-size-scorer: (most - n) / (most - least)") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c", "d"}) b.add(name);
  const std::uint32_t n[] = {2, 10, 4};
  for (std::size_t i = 0; i < 3; ++i) {
    b.all[i].load.waiting = n[i];
    b.all[i].load.running = n[2 - i];
  }
  check_scores(b.score("queue-scorer"), {1, 0, 0.75, not_measured});
  check_scores(b.score("running-requests-size-scorer"), {0.75, 0, 1, not_measured});
  check_scores(b.score("running-requests-scorer"), {0.75, 0, 1, not_measured});
  for (auto& c : b.all) c.load.waiting = 7;
  check_scores(b.score("queue-scorer"), {1, 1, 1, 1});
  for (auto& c : b.all) c.load.waiting.reset();
  check_scores(b.score("queue-scorer"), {not_measured, not_measured, not_measured, not_measured});
}

TEST_CASE("load-aware-scorer: half, less the share of the threshold that waits") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c", "d"}) b.add(name);
  b.all[0].load.waiting = 0;
  b.all[1].load.waiting = 32;
  b.all[2].load.waiting = 500;
  check_scores(b.score("load-aware-scorer"), {0.5, 0.375, 0, not_measured});
  check_scores(b.score("load-aware-scorer", R"({"threshold": 64})"), {0.5, 0.25, 0, not_measured});
}

TEST_CASE("active-request-scorer: the idle first, the others against the busiest") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  check_scores(b.score("active-request-scorer"), {1, 1, 1});
  b.all[1].load.in_flight = 3;
  b.all[2].load.in_flight = 4;
  check_scores(b.score("active-request-scorer"), {1, 0.25, 0});
  check_scores(b.score("active-request-scorer", R"({"maxBusyScore": 0.5})"), {1, 0.125, 0});
  check_scores(b.score("active-request-scorer", R"({"idleThreshold": 3, "requestTimeout": "2m"})"), {1, 1, 0});
}

TEST_CASE("token-load-scorer: tokens that wait and those of this request, against the threshold") {
  plugin_bench b;
  b.add("a");
  b.add("b");
  b.add("c");
  b.request.prompt_tokens = 400;
  b.request.block_size = 16;
  b.request.blocks = 25;
  b.all[1].load.prefill_tokens = 500;
  b.all[2].load.prefill_tokens = 5'000;
  b.all[1].held_blocks = 10;
  // 400; 500 + 400 - 160; over.
  check_scores(b.score("token-load-scorer", R"({"queueThresholdTokens": 1000})"), {0.6, 0.26, 0});
  check_scores(b.score("token-load-scorer"), {1 - 400 / 4194304.0, 1 - 740 / 4194304.0, 1 - 5400 / 4194304.0});
}

TEST_CASE("prefix-cache-scorer: the matched share, and the squared matched length where it has a weight") {
  plugin_bench b;
  b.add("a");
  b.add("b");
  b.request.block_size = 1;
  b.request.blocks = 10;
  b.all[0].held_blocks = 5;
  b.all[1].held_blocks = 2;
  b.all[1].predicted_blocks = 4;
  CHECK(make_plugin<scorer>("prefix-cache-scorer")->uses_cache());
  check_scores(b.score("prefix-cache-scorer"), {0.5, 0.4});
  // 0.5 * (5 / 100)^2 + 0.5 * 0.5.
  check_scores(b.score("prefix-cache-scorer", R"({"matchLengthWeight": 0.5, "matchLengthScaleTokens": 100})"),
               {0.25125, 0.5 * 0.0016 + 0.2});
  // The length counts in full from the scale on.
  check_scores(b.score("prefix-cache-scorer", R"({"matchLengthWeight": 1, "matchLengthScaleTokens": 2})"), {1, 1});
  check_scores(b.score("prefix-cache-scorer", R"({"prefixMatchInfoProducerName": "approx-prefix-cache-producer"})"),
               {0, 0.4});
  check_scores(b.score("precise-prefix-cache-scorer",
                       R"({"indexerConfig": {"kvBlockIndexConfig": {}}, "tokenProcessorConfig": {"blockSize": 64}})"),
               {0.5, 0.2});
  check_scores(b.score("prefix-cache-scorer", R"({"autoTune": false, "lruCapacityPerServer": 31250})"), {0.5, 0.4});
  b.request.blocks = 0;
  check_scores(b.score("prefix-cache-scorer"), {0, 0});
}

TEST_CASE("lora-affinity-scorer: in the batch, room for it, waiting, none of these; loaded where nothing is said") {
  plugin_bench b;
  b.request.adapter = "l";
  b.add("runs").adapters_in_use = adapter_use{{"a", "l"}, {}, 2};
  b.add("room").adapters_in_use = adapter_use{{"a"}, {"l"}, 3};
  b.add("waits").adapters_in_use = adapter_use{{"a", "b"}, {"l"}, 3};
  b.add("full").adapters_in_use = adapter_use{{"a", "b"}, {}, 2};
  b.add("no_most").adapters_in_use = adapter_use{{"a"}, {"l"}, {}};
  b.add("loaded").adapters = {"l"};
  b.add("not_loaded");
  check_scores(b.score("lora-affinity-scorer"), {1, 0.8, 0.6, 0, 0.6, 1, 0});
  b.request.adapter = "";
  check_scores(b.score("lora-affinity-scorer"), {1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("lora-affinity-scorer: whether the adapter is loaded") {
  plugin_bench b;
  b.add("a").adapters = {"x", "y"};
  b.add("b");
  check_scores(b.score("lora-affinity-scorer"), {1, 1});
  b.request.adapter = "y";
  check_scores(b.score("lora-affinity-scorer"), {1, 0});
}

TEST_CASE("no-hit-lru-scorer: prompts nobody caches go round by when the last of them came") {
  plugin_bench b;
  for (const auto* name : {"a", "b", "c"}) b.add(name);
  const auto by = make_plugin<scorer>("no-hit-lru-scorer", R"({"lruSize": 2})");
  check_scores(b.score(*by), {1, 0.5, 0});
  by->routed(b.context(), b.all[0]);
  check_scores(b.score(*by), {0, 1, 0.5});
  by->routed(b.context(), b.all[1]);
  check_scores(b.score(*by), {0.5, 0, 1});
  by->routed(b.context(), b.all[2]);  // `a` is forgotten: two are remembered at most
  check_scores(b.score(*by), {1, 0.5, 0});
  b.all[2].predicted_blocks = 1;
  check_scores(b.score(*by), {0.5, 0.5, 0.5});
  by->routed(b.context(), b.all[2]);  // somebody cached it: does not count
  b.all[2].predicted_blocks = 0;
  check_scores(b.score(*by), {1, 0.5, 0});
  b.all.resize(1);
  check_scores(b.score(*by), {1});
}

TEST_CASE("context-length-aware: tight ranges with headroom best, outside by distance; as a filter too") {
  plugin_bench b;
  const auto label = [&](endpoint& e, std::string range) { e.labels = {{"llm-d.ai/context-length-range", range}}; };
  label(b.add("short"), "0-2000");
  label(b.add("long"), "2000 - 10000");
  b.add("any");
  label(b.add("wrong"), "5000-100");
  label(b.add("exact"), "1000-1000");
  b.request.prompt_tokens = 1'000;
  const double inside = 0.3 + 0.7 * (0.7 / 1.2 + 0.3 * 0.5);
  check_scores(b.score("context-length-aware"), {inside, 0.3 / 2, 0.5, 0, 1});
  b.request.prompt_tokens = 3'000;
  check_scores(b.score("context-length-aware"), {0.3 / 2, 0.3 + 0.7 * (0.7 / 1.8 + 0.3 * 7.0 / 8.0), 0.5, 0, 0.3 / 3});
  CHECK(make_plugin<scorer>("context-length-aware")->filters() == nullptr);
  const auto both = make_plugin<scorer>("context-length-aware", R"({"enableFiltering": true})");
  REQUIRE(both->filters());
  CHECK(b.kept(*both->filters()) == "long any ");
  CHECK(refused("context-length-aware", R"({"label": ""})") == "parameters.label: the name of a label");
}

TEST_CASE("topology-affinity: near the other leg's engine, as near as is known") {
  plugin_bench b;
  const auto place = [](endpoint& e, std::string host, std::string rack, std::string zone, std::string region) {
    e.node = host;
    e.labels = {{"topology.kubernetes.io/rack", rack},
                {"topology.kubernetes.io/region", region},
                {"topology.kubernetes.io/zone", zone}};
  };
  place(b.add("same"), "h1", "r1", "z1", "eu");
  place(b.add("rack"), "h2", "r1", "z1", "eu");
  place(b.add("zone"), "h3", "r2", "z1", "eu");
  place(b.add("region"), "h4", "r3", "z2", "eu");
  place(b.add("far"), "h5", "r4", "z3", "us");
  b.add("unknown");
  check_scores(b.score("topology-affinity-scorer"), {0, 0, 0, 0, 0, 0});
  CHECK(b.kept("topology-affinity-filter") == "same rack zone region far unknown ");
  const auto other = b.all[0];
  b.partner = &other;
  check_scores(b.score("topology-affinity-scorer"), {1, 0.2, 0.05, 0.02, 0, 0});
  CHECK(b.kept("topology-affinity-filter") == "same ");
  CHECK(b.kept("topology-affinity-filter", R"({"minAffinity": "zone"})") == "same rack zone ");
  b.all.erase(b.all.begin(), b.all.begin() + 4);
  CHECK(b.kept("topology-affinity-filter", R"({"minAffinity": "zone"})") == "far unknown ");
  // An engine of which nothing is known is near nobody, not even another such.
  const auto nowhere = b.all.back();
  b.partner = &nowhere;
  check_scores(b.score("topology-affinity-scorer"), {0, 0});
}

TEST_CASE("session affinity by the engine's name in base64") {
  plugin_bench b;
  b.add("a");
  b.add("b");
  check_scores(b.score("session-affinity-scorer"), {0, 0});
  CHECK(b.kept("session-affinity-filter") == "a b ");
  const std::vector<header> headers{{"x-session-token", "Yg=="}};  // b
  b.request.headers = headers;
  check_scores(b.score("session-affinity-scorer"), {0, 1});
  CHECK(b.kept("session-affinity-filter") == "b ");
  CHECK(b.kept("session-affinity-filter", R"({"headerName": "X-Other"})") == "a b ");
  const std::vector<header> address{{"x-other", "YTo4MDAw"}};  // a:8000
  b.request.headers = address;
  CHECK(b.kept("session-affinity-filter", R"({"headerName": "X-Other"})") == "a ");
  for (const auto* odd : {"!!", "Y", "enp6"}) {
    const std::vector<header> nobody{{"x-session-token", odd}};
    b.request.headers = nobody;
    CHECK(b.kept("session-affinity-filter") == "a b ");
  }
}

TEST_CASE("session affinity by a remembered name: bounded, forgotten when unused, each leg apart") {
  plugin_bench b;
  b.add("a");
  b.add("b");
  const auto by = make_plugin<filter>("session-affinity-filter",
                                      R"({"strategy": "session_id", "maxSessions": 2, "sessionIdConfig":
      {"sources": [{"header": "x-session-id"}, {"attribute": "agent-identity"}], "evictionTtlSeconds": 60}})");
  const auto as = [&](std::string_view name) {
    static std::vector<header> headers;
    headers = {{"x-session-id", name}};
    b.request.headers = headers;
  };
  as("s1");
  CHECK(b.kept(*by) == "a b ");
  by->routed(b.context(), b.all[1]);
  CHECK(b.kept(*by) == "b ");
  b.leg = serving_leg::prefill;
  CHECK(b.kept(*by) == "a b ");
  b.leg = serving_leg::decode;
  as("s2");
  by->routed(b.context(), b.all[0]);
  CHECK(b.kept(*by) == "a ");
  as("s1");
  by->routed(b.context(), b.all[1]);
  as("s3");
  by->routed(b.context(), b.all[0]);
  as("s2");  // two are remembered, and this one was unused longest
  CHECK(b.kept(*by) == "a b ");
  as("s1");
  CHECK(b.kept(*by) == "b ");
  b.all.resize(1);  // its engine is gone
  CHECK(b.kept(*by) == "a ");
  by->routed(b.context(), b.all[0]);
  b.now += 61s;
  b.add("c");
  CHECK(b.kept(*by) == "a c ");
  const auto score = make_plugin<scorer>("session-affinity-scorer", R"({"algorithm": "session_id_header"})");
  score->routed(b.context(), b.all[1]);
  check_scores(b.score(*score), {0, 1});
}

TEST_CASE("session affinity by a remembered name: the same name is another session for another model") {
  plugin_bench b;
  b.add("a");
  b.add("b");
  const auto by = make_plugin<filter>("session-affinity-filter", R"({"strategy": "session_id"})");
  const std::vector<header> headers{{"x-session-id", "s"}};
  b.request.headers = headers;
  by->routed(b.context(), b.all[1]);
  CHECK(b.kept(*by) == "b ");
  b.model.model = "other";
  CHECK(b.kept(*by) == "a b ");
  by->routed(b.context(), b.all[0]);
  CHECK(b.kept(*by) == "a ");
  b.model.model = "m";
  CHECK(b.kept(*by) == "b ");
}

}  // namespace
}  // namespace infernex::router
