#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "actors/router/policy.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

/// A few engines `e0`, `e1`, … of model `m`, all ready and aggregated unless a test changes it.
struct table {
  load_board loads{16};
  model_endpoints of{"m", {}};
  policy how;
  std::vector<overlap> found;
  std::vector<overlap> predicted;
  bool index_known = true;

  explicit table(unsigned engines, std::string s = "kv-aware") {
    how.strategy = std::move(s);
    for (unsigned i = 0; i < engines; ++i) {
      endpoint e;
      e.instance = "e" + std::to_string(i);
      e.url = "http://127.0.0.1:" + std::to_string(9'000 + i);
      e.state = fb::EngineState::Ready;
      e.slot = *loads.acquire();
      of.endpoints.push_back(e);
    }
  }
  void load(unsigned engine, std::optional<std::uint32_t> waiting, std::optional<double> kv,
            std::uint32_t in_flight = 0) {
    loads.report(of.endpoints[engine].slot, 0, waiting, kv, now);
    loads.set_remote(of.endpoints[engine].slot, {in_flight, 0});
  }
  void all_idle() {
    for (unsigned i = 0; i < of.endpoints.size(); ++i) load(i, 0, 0.0);
  }
  decision decide(std::uint32_t blocks, std::string_view adapter = {}, std::span<const std::string_view> exclude = {}) {
    placement p;
    p.request_id = "r";
    p.blocks = blocks;
    p.adapter = adapter;
    p.exclude = exclude;
    return by().decide(p, &of, loads, {index_known, index_known ? "" : "no answer", found, predicted}, now);
  }
  std::string chosen(std::uint32_t blocks = 20) {
    const auto d = decide(blocks);
    return d.serving.ranked.empty() ? "" : d.serving.ranked.front().to->instance;
  }
  /// The scheduler of `how`; a new one where `how` has changed.
  scheduler& by() {
    const std::vector<double> weights{how.weight_overlap,   how.weight_kv_usage, how.weight_waiting,
                                      how.weight_in_flight, how.tiers.device,    how.tiers.host,
                                      how.tiers.disk,       1.0 * how.runners_up};
    if (!made_ || weights != weights_ || how.strategy != made_->name()) made_ = make_scheduler(spec_of(how));
    weights_ = weights;
    return *made_;
  }

 private:
  std::unique_ptr<scheduler> made_;
  std::vector<double> weights_;
};

TEST_CASE("kv-aware: the engine that holds the whole prompt wins when loads are equal, whoever's turn it is") {
  for (const auto weight : {0.01, 2.0}) {
    table t(4);
    t.how.weight_overlap = weight;
    t.all_idle();
    t.found = {{"e1", 5}, {"e2", 20}};
    for (int i = 0; i < 8; ++i) CHECK(t.chosen() == "e2");
  }
}

TEST_CASE("kv-aware: the reason names what decided") {
  table t(4);
  t.all_idle();
  t.load(2, 0, 0.31, 1);
  t.found = {{"e2", 14}};
  const auto d = t.decide(20);
  CHECK(d.index_used);
  CHECK(d.reason == "kv-aware: e2 holds 14 of 20 blocks, kv 31 %, waiting 0, in flight 1");
  CHECK(d.serving.ranked.front().overlap_blocks == 14);
  REQUIRE(d.serving.scorers.size() == 4);
  CHECK(d.serving.scorers[0].name == "overlap");
  CHECK(d.serving.scores_of(0)[0] == doctest::Approx(0.7));
  CHECK(d.serving.ranked.front().total == doctest::Approx(2 * 0.7 + 0.69 + 1 + (1 - 1 / 8.0)));
}

TEST_CASE("kv-aware: on a quiet fleet one request more or less does not outweigh a cached prompt") {
  table t(2);
  t.all_idle();
  t.load(1, 1, 0.0, 1);
  t.found = {{"e1", 20}};
  for (int i = 0; i < 4; ++i) CHECK(t.chosen() == "e1");
}

TEST_CASE("kv-aware: load outweighs a small overlap") {
  table t(2);
  t.load(0, 30, 0.95, 40);
  t.load(1, 0, 0.10, 0);
  t.found = {{"e0", 10}};
  CHECK(t.chosen() == "e1");
  t.how.weight_overlap = 10;
  CHECK(t.chosen() == "e0");
}

TEST_CASE("kv-aware without an index: by load only, and it says why") {
  table t(2);
  t.load(0, 3, 0.5, 2);
  t.load(1, 0, 0.5, 0);
  placement p;
  p.blocks = 7;
  const overlap stale[] = {{"e0", 7}};
  const auto d = t.by().decide(p, &t.of, t.loads, {false, "the indexer did not answer in 50 ms", stale, {}}, now);
  CHECK_FALSE(d.index_used);
  CHECK(d.serving.ranked.front().to->instance == "e1");
  CHECK(d.serving.ranked.front().overlap_blocks == 0);
  CHECK(d.reason == "kv-aware by load only (the indexer did not answer in 50 ms): e1, kv 50 %, waiting 0, in flight 0");
  const auto no_keys = t.decide(0);
  CHECK(no_keys.reason.find("kv-aware by load only (no cacheable block keys): e1") == 0);
}

TEST_CASE("kv-aware: a block is worth what its tier is worth") {
  table t(3);
  t.all_idle();
  // 10 on the device, 10 more on the host, 20 more on disk: 10 + 0.8 * 10 + 0.5 * 20 = 28.
  t.found = {{"e0", 40, 10, 20}, {"e1", 27}, {"e2", 29, 29, 29}};
  auto d = t.decide(40);
  CHECK(d.serving.ranked[0].to->instance == "e2");
  CHECK(d.serving.ranked[1].to->instance == "e0");
  CHECK(d.serving.scores_of(1)[0] == doctest::Approx(0.7));
  CHECK(d.serving.ranked[1].overlap_blocks == 40);
  CHECK(d.serving.ranked[1].device_blocks == 10);
  CHECK(d.serving.ranked[1].host_blocks == 20);
  t.how.tiers = {1, 1, 1};
  CHECK(t.chosen(40) == "e0");
  t.how.tiers = {1, 0, 0};
  CHECK(t.decide(40).serving.ranked[2].to->instance == "e0");
  // Numbers that do not fit together, or the prompt, do no harm.
  t.found = {{"e0", 4, 90, 2}};
  d = t.decide(3);
  CHECK(d.serving.ranked[0].overlap_blocks == 3);
  CHECK(d.serving.ranked[0].host_blocks == 2);
  CHECK(d.serving.ranked[0].device_blocks == 2);
}

TEST_CASE("kv-aware: a prediction counts where it is more than the index knows, and the decision says so") {
  table t(3);
  t.all_idle();
  t.found = {{"e0", 5}, {"e1", 8}};
  t.predicted = {{"e0", 14}, {"e1", 6}, {"nobody", 20}};
  auto d = t.decide(20);
  CHECK(d.reason == "kv-aware: e0 holds 5, predicted 14 of 20 blocks, kv 0 %, waiting 0, in flight 0");
  CHECK(d.by_prediction);
  CHECK(d.index_used);
  CHECK(d.serving.ranked[0].by_prediction);
  CHECK(d.serving.ranked[0].overlap_blocks == 5);
  CHECK(d.serving.ranked[0].predicted_blocks == 14);
  CHECK(d.serving.ranked[0].expected_blocks() == 14);
  CHECK(d.serving.scores_of(0)[0] == doctest::Approx(0.7));
  CHECK(d.serving.ranked[1].to->instance == "e1");
  CHECK_FALSE(d.serving.ranked[1].by_prediction);
  CHECK(d.serving.ranked[1].predicted_blocks == 6);
  t.predicted = {{"e0", 5}};
  d = t.decide(20);
  CHECK(d.serving.ranked[0].to->instance == "e1");
  CHECK_FALSE(d.by_prediction);
}

TEST_CASE("kv-aware: predictions alone decide where the index knows nothing; no other strategy looks at them") {
  table t(3);
  t.all_idle();
  t.index_known = false;
  t.predicted = {{"e2", 3}};
  auto d = t.decide(4);
  CHECK(d.serving.ranked[0].to->instance == "e2");
  CHECK(d.reason == "kv-aware by prediction (no answer): e2 predicted 3 of 4 blocks, kv 0 %, waiting 0, in flight 0");
  CHECK_FALSE(d.index_used);
  CHECK(d.by_prediction);
  t.load(2, 30, 0.9, 30);
  d = t.decide(4);
  CHECK(d.serving.ranked[0].to->instance != "e2");
  CHECK_FALSE(d.by_prediction);
  CHECK(d.reason.find("kv-aware by load only (no answer): ") == 0);
  t.how.strategy = "least-load";
  CHECK(t.decide(4).serving.ranked[0].predicted_blocks == 0);
}

TEST_CASE("least-load: each of kv usage, waiting and in-flight decides when the others are equal") {
  struct row {
    std::uint32_t waiting[2];
    double kv[2];
    std::uint32_t in_flight[2];
  };
  // e1 is the better one in each row.
  for (const row& r :
       {row{{1, 0}, {0.5, 0.5}, {2, 2}}, row{{0, 0}, {0.6, 0.5}, {2, 2}}, row{{4, 4}, {0.1, 0.1}, {3, 2}}}) {
    table t(2, "least-load");
    for (unsigned i : {0U, 1U}) t.load(i, r.waiting[i], r.kv[i], r.in_flight[i]);
    for (int i = 0; i < 4; ++i) CHECK(t.chosen() == "e1");
  }
  table t(2, "least-load");
  t.all_idle();
  t.found = {{"e0", 20}};
  const auto d = t.decide(20);
  CHECK_FALSE(d.index_used);
  CHECK(d.reason == "least-load: e0, kv 0 %, waiting 0, in flight 0");
}

TEST_CASE("an engine whose load was not measured counts neither best nor worst, and the reason says so") {
  table t(3, "least-load");
  t.load(0, 0, 0.1);
  t.load(2, 9, 0.9);
  const auto d = t.decide(0);
  REQUIRE(d.serving.ranked.size() == 3);
  CHECK(d.serving.ranked[0].to->instance == "e0");
  CHECK(d.serving.ranked[1].to->instance == "e1");
  CHECK(d.serving.ranked[2].to->instance == "e2");
  const std::string_view others[] = {"e0", "e2"};
  CHECK(t.decide(0, {}, others).reason == "least-load: e1, kv not measured, waiting not measured, in flight 0");
}

TEST_CASE("measurements that are too old count as not measured") {
  table t(2, "least-load");
  t.load(0, 0, 0.0);
  placement p;
  const auto later = now + 11s;
  const auto d = t.by().decide(p, &t.of, t.loads, {}, later);
  CHECK(d.serving.ranked[0].total == d.serving.ranked[1].total);
  CHECK(d.reason.find("not measured") != std::string::npos);
}

TEST_CASE("ties are broken in turn") {
  table t(3);
  t.all_idle();
  std::map<std::string, int> times;
  for (int i = 0; i < 30; ++i) ++times[t.chosen()];
  CHECK(times == std::map<std::string, int>{{"e0", 10}, {"e1", 10}, {"e2", 10}});
}

TEST_CASE("round-robin goes round, whatever the loads; runners-up follow in the same order") {
  table t(3, "round-robin");
  t.load(0, 50, 1.0, 99);
  std::string order;
  for (int i = 0; i < 6; ++i) order += t.chosen();
  CHECK(order == "e0e1e2e0e1e2");
  const auto d = t.decide(0);
  CHECK(d.reason == "round-robin: e0 is next of 3");
  REQUIRE(d.serving.ranked.size() == 3);
  CHECK(d.serving.ranked[1].to->instance == "e1");
  CHECK(d.serving.ranked[2].to->instance == "e2");
}

TEST_CASE("runners-up come best first and are bounded") {
  table t(6);
  for (unsigned i = 0; i < 6; ++i) t.load(i, 5 - i, 0.5);
  t.how.runners_up = 2;
  const auto d = t.decide(0);
  REQUIRE(d.serving.ranked.size() == 3);
  CHECK(d.serving.ranked[0].to->instance == "e5");
  CHECK(d.serving.ranked[1].to->instance == "e4");
  CHECK(d.serving.ranked[2].to->instance == "e3");
  CHECK(d.serving.ranked[0].total > d.serving.ranked[1].total);
  t.how.runners_up = 0;
  CHECK(t.decide(0).serving.ranked.size() == 1);
}

TEST_CASE("filters: state, role, adapter, exclusion, and what is said when nothing is left") {
  table t(5);
  t.all_idle();
  t.of.endpoints[0].state = fb::EngineState::Starting;
  t.of.endpoints[1].state = fb::EngineState::Starting;
  t.of.endpoints[2].state = fb::EngineState::Down;
  t.of.endpoints[3].state = fb::EngineState::Draining;
  SUBCASE("one is left") { CHECK(t.chosen() == "e4"); }
  SUBCASE("none is ready") {
    t.of.endpoints[4].state = fb::EngineState::Unknown;
    const auto d = t.decide(3);
    CHECK(d.serving.ranked.empty());
    CHECK(d.reason == "no engine of model m is ready: 2 starting, 1 draining, 1 down, 1 in an unknown state");
  }
  SUBCASE("role") {
    t.of.endpoints[4].role = fb::EngineRole::Prefill;
    CHECK(t.decide(3).reason ==
          "no engine of model m can take this request: 2 starting, 1 draining, 1 down, 1 for prefill or decode only");
  }
  SUBCASE("excluded") {
    const std::string_view failed[] = {"e4"};
    CHECK(t.decide(3, {}, failed).reason ==
          "no engine of model m can take this request: 2 starting, 1 draining, 1 down, 1 excluded after failing it");
  }
  SUBCASE("adapter") {
    CHECK(t.decide(3, "lora-a").reason ==
          "no engine of model m can take this request: 2 starting, 1 draining, 1 down, 1 without adapter lora-a");
    t.of.endpoints[4].adapters = {"lora-b", "lora-a"};
    CHECK(t.decide(3, "lora-a").serving.ranked.front().to->instance == "e4");
  }
}

TEST_CASE("unknown models and models without engines") {
  table t(0);
  CHECK(t.decide(1).reason == "no engine of model m is ready: none is known");
  CHECK(t.by().decide({}, nullptr, t.loads, {}, now).reason == "no engine of this model has been announced");
}

TEST_CASE("scores and totals are finite and scores in 0..1, whatever comes in") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double kv : {nan, inf, -inf, -3.0, 7.0, 1e308})
    for (const double weight : {0.0, 1e-300, 1e6}) {
      table t(3);
      t.how.weight_overlap = t.how.weight_kv_usage = t.how.weight_waiting = t.how.weight_in_flight = weight;
      t.load(0, std::numeric_limits<std::uint32_t>::max(), kv, std::numeric_limits<std::uint32_t>::max());
      t.load(1, 0, 0.5);
      t.loads.reserve(t.of.endpoints[0].slot, {5, ~std::uint64_t{0}});
      t.found = {{"e0", std::numeric_limits<std::uint32_t>::max()}, {"nobody", 3}};
      const auto d = t.decide(3);
      REQUIRE(d.serving.ranked.size() == 3);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(std::isfinite(d.serving.ranked[i].total));
        CHECK(d.serving.ranked[i].overlap_blocks <= 3);
        for (const auto score : d.serving.scores_of(i)) {
          CHECK(score >= 0);
          CHECK(score <= 1);
        }
      }
    }
}

TEST_CASE("what a reservation counts: prompt tokens less those in cache, estimated where not known") {
  placement p;
  p.block_size = 16;
  p.prompt_tokens = 100;
  CHECK(p.uncached_tokens(0) == 100);
  CHECK(p.uncached_tokens(4) == 36);
  CHECK(p.uncached_tokens(99) == 0);
  p.prompt_tokens.reset();
  p.prompt_bytes = 400;
  CHECK(p.uncached_tokens(0) == 100);
}

TEST_CASE("a topology finds models by name and by adapter, and the smallest block size") {
  topology all;
  table t(3);
  t.of.endpoints[1].adapters = {"lora-a"};
  t.of.endpoints[1].block_size = 32;
  t.of.endpoints[2].block_size = 16;
  t.of.endpoints[0].state = fb::EngineState::Down;
  all.models.emplace("m", t.of);
  REQUIRE(all.find("m"));
  CHECK(all.find("lora-a") == all.find("m"));
  CHECK(all.find("lora-b") == nullptr);
  CHECK(all.find("m")->block_size() == 16);
  CHECK(all.find("m")->ready_count() == 2);
  CHECK_FALSE(model_endpoints{}.block_size());
}

}  // namespace
}  // namespace infernex::router
