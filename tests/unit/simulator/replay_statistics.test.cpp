#include "actors/simulator/replay_statistics.hpp"

#include <cmath>

#include <doctest/doctest.h>

using namespace infernex::simulator;

TEST_CASE("quantiles of the histogram are within 0.8 % of the exact ones, over its whole range") {
  for (const double unit : {0.001, 1.0, 997.0, 1e5}) {
    replay_histogram values;
    for (int i = 1; i <= 1000; ++i) values.add(unit * i);
    CHECK(values.count() == 1000);
    CHECK(*values.mean() == doctest::Approx(unit * 500.5).epsilon(1e-9));
    CHECK(*values.most() == unit * 1000);
    for (const int rank : {1, 10, 500, 900, 990, 1000})
      CHECK(std::abs(*values.quantile(rank / 1000.0) / (unit * rank) - 1) < 0.008);
  }
}

TEST_CASE("a weighted value counts as often as its weight") {
  replay_histogram values;
  values.add(10, 98);
  values.add(30);
  values.add(50, 1);
  values.add(70, 0);
  CHECK(values.count() == 100);
  CHECK(*values.mean() == doctest::Approx(10.6));
  CHECK(*values.quantile(0.98) == doctest::Approx(10).epsilon(0.008));
  CHECK(*values.quantile(0.99) == doctest::Approx(30).epsilon(0.008));
  CHECK(*values.quantile(1) == doctest::Approx(50).epsilon(0.008));
}

TEST_CASE("what lies outside of the buckets is still counted, and an empty histogram knows nothing") {
  replay_histogram values;
  CHECK_FALSE(values.quantile(0.5));
  CHECK_FALSE(values.mean());
  CHECK_FALSE(values.most());
  values.add(0);
  values.add(-3);
  values.add(1e-9);
  values.add(1e30);
  CHECK(values.count() == 4);
  CHECK(*values.quantile(0.5) == 0);
  CHECK(*values.quantile(1) == 1e30);
}

namespace {

/// Warm-up until 100 ms; request 0 is in it. 1: TTFT 50 ms, 3 tokens, done at 250. 2: TTFT 4000 ms, late for an
/// unloaded 900 ms (limit 3800). 3: the same TTFT, in time for 1100 ms (limit 4200), done at 6000. 4: shed.
/// 5: fails after a first token in time. 6: still waits.
replay_statistics seven_requests() {
  replay_statistics all({.warm_up_ms = 100});
  all.arrived(0, 50);
  all.first_token(0, 120, 10, 0, 5);
  all.finished(0, 130, 1);
  for (std::uint64_t id = 1; id <= 6; ++id) all.arrived(id, 100 + 100 * static_cast<double>(id - 1));
  all.first_token(1, 150, 100, 60, 10);
  all.finished(1, 250, 3);
  all.first_token(2, 4200, 200, 0, 900);
  all.finished(2, 4700, 20);
  all.first_token(3, 4300, 100, 40, 1100);
  all.finished(3, 6100, 7);
  all.shed(4, 410);
  all.first_token(5, 600, 100, 0, 10);
  all.failed(5, 700);
  return all;
}

}  // namespace

TEST_CASE("a summary of requests worked out by hand") {
  const auto all = seven_requests().summary();
  CHECK(all.warm_up_requests == 1);
  CHECK(all.requests == 6);
  CHECK(all.completed == 3);
  CHECK(all.shed == 1);
  CHECK(all.failed == 1);
  CHECK(all.unfinished == 1);
  CHECK(all.output_tokens == 30);
  CHECK(all.prompt_tokens == 500);
  CHECK(all.cached_tokens == 100);
  CHECK(*all.hit_share == doctest::Approx(0.2));
  // In time: 1 and 3 of six.
  CHECK(*all.goodput == doctest::Approx(2.0 / 6));
  // Time per token: 100 of 2, 500 of 19, 1800 of 6 tokens; the last one's 300 ms are too slow.
  REQUIRE(all.per_token);
  CHECK(all.per_token->mean == doctest::Approx((50 + 500 / 19.0 + 300) / 3));
  CHECK(*all.goodput_per_token == doctest::Approx(1.0 / 6));
  // TTFT: 50, 4000, 4000, 100 (of 5).
  REQUIRE(all.ttft);
  CHECK(all.ttft->count == 4);
  CHECK(all.ttft->mean == doctest::Approx((50 + 4000 + 4000 + 100) / 4.0));
  CHECK(all.ttft->p50 == doctest::Approx(100).epsilon(0.008));
  CHECK(all.ttft->p99 == doctest::Approx(4000).epsilon(0.008));
  // End to end: 150, 4500, 5800; from 100 ms to 6100 ms.
  REQUIRE(all.end_to_end);
  CHECK(all.end_to_end->mean == doctest::Approx((150 + 4500 + 5800) / 3.0));
  CHECK(*all.requests_per_second == doctest::Approx(3 / 6.0));
  CHECK(*all.output_tokens_per_second == doctest::Approx(30 / 6.0));
  CHECK_FALSE(all.inter_token);
  CHECK_FALSE(all.work_imbalance);
  CHECK_FALSE(all.load_variation);
}

TEST_CASE("calls out of order, twice, or of unknown requests change nothing") {
  auto all = seven_requests();
  all.first_token(1, 9000, 1, 1, 1);
  all.finished(1, 9000, 1);
  all.finished(6, 9000, 1);
  all.shed(1, 9000);
  all.failed(4, 9000);
  all.first_token(77, 9000, 1, 1, 1);
  all.arrived(2, 9000);
  const auto after = all.summary();
  const auto before = seven_requests().summary();
  CHECK(after.requests == before.requests);
  CHECK(after.completed == before.completed);
  CHECK(after.failed == before.failed);
  CHECK(after.prompt_tokens == before.prompt_tokens);
  CHECK(*after.requests_per_second == *before.requests_per_second);
}

TEST_CASE("nothing measured is nothing, not zero") {
  const auto none = replay_statistics().summary();
  CHECK(none.requests == 0);
  CHECK_FALSE(none.ttft);
  CHECK_FALSE(none.goodput);
  CHECK_FALSE(none.hit_share);
  CHECK_FALSE(none.requests_per_second);
}

TEST_CASE("inter-token latency, work and load count after the warm-up only") {
  replay_statistics all({.warm_up_ms = 100});
  all.tokens(1000, 7, 99);
  all.tokens(9, 20, 100);
  all.tokens(1, 40, 200);
  all.worked(0, 500, 50);
  all.worked(0, 30, 150);
  all.worked(2, 60, 300);
  all.engines(3);
  const std::vector<double> before{9, 0, 0}, even{4, 4, 4}, uneven{0, 6, 0}, idle{0, 0, 0};
  all.sampled(before, 10);
  all.sampled(even, 110);
  all.sampled(uneven, 120);  // mean 2, squares 4 + 16 + 4, deviation sqrt(8): variation sqrt(2)
  all.sampled(idle, 130);
  const auto seen = all.summary();
  REQUIRE(seen.inter_token);
  CHECK(seen.inter_token->count == 10);
  CHECK(seen.inter_token->mean == doctest::Approx(22));
  CHECK(seen.inter_token->p90 == doctest::Approx(20).epsilon(0.008));
  CHECK(seen.inter_token->p99 == doctest::Approx(40).epsilon(0.008));
  CHECK(*seen.work_imbalance == doctest::Approx(60 / 30.0));
  CHECK(*seen.load_variation == doctest::Approx(std::sqrt(2.0) / 2));
}
