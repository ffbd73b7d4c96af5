#include <cmath>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "actors/router/plugins/length_buckets.hpp"
#include "tests/unit/router/plugin_fixture.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using plugins::length_buckets;
using member = length_buckets::member;
constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs(std::span<const length_buckets::range> ranges) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  for (const auto& r : ranges) out.emplace_back(r.min, r.max);
  return out;
}

void check_cover(std::span<const length_buckets::range> ranges, std::size_t groups) {
  REQUIRE(ranges.size() == groups);
  if (groups == 0) return;
  CHECK(ranges.front().min == 0);
  CHECK(ranges.back().max == no_limit);
  for (std::size_t i = 0; i < groups; ++i) {
    CHECK(ranges[i].min <= ranges[i].max);
    if (i == 0) continue;
    CHECK(ranges[i - 1].min <= ranges[i].min);
    CHECK(ranges[i - 1].max <= ranges[i].max);
    CHECK((ranges[i].min <= ranges[i - 1].max || ranges[i].min == ranges[i - 1].max + 1));
  }
}

TEST_CASE("length buckets: until enough is learned, one split; then equal work, by hand") {
  length_buckets b({});
  clock_point t{100s};
  const std::vector<member> three{{1, 1}, {2, 1}, {3, 1}};
  using expected = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  CHECK(pairs(b.ranges(three, t)) == expected{{0, 199}, {200, no_limit}, {200, no_limit}});
  CHECK(pairs(b.ranges(std::vector<member>{{1, 1}}, t)) == expected{{0, no_limit}});
  CHECK(b.ranges({}, t).empty());
  b.ranges(three, t);
  // Work 12 * 100: 400 each. 100 100 100 | 200 200 | 500 (the boundary lies where the running sum reaches 400, 800).
  for (const auto tokens : {100, 100, 100, 200, 200, 500}) b.placed(static_cast<std::uint64_t>(tokens), t);
  t += 5s;
  CHECK(pairs(b.ranges(three, t)) == expected{{0, 199}, {200, no_limit}, {200, no_limit}});  // too few yet
  for (const auto tokens : {100, 100, 100, 200, 200, 500}) b.placed(static_cast<std::uint64_t>(tokens), t);
  CHECK(pairs(b.ranges(three, t)) == expected{{0, 199}, {200, no_limit}, {200, no_limit}});  // not due
  t += 5s;
  CHECK(pairs(b.ranges(three, t)) == expected{{0, 200}, {200, 500}, {500, no_limit}});
  // Prompts of one length are everybody's.
  t += 31s;
  for (int i = 0; i < 12; ++i) b.placed(64, t);
  CHECK(b.lengths() == 12);
  CHECK(pairs(b.ranges(three, t)) == expected{{0, 64}, {64, 64}, {64, no_limit}});
  // A group with two engines gets twice the work: 64 * 12 / 4 * 2.
  for (int i = 1; i <= 12; ++i) b.placed(64 + static_cast<std::uint64_t>(i), t);
  const auto two = b.ranges(std::vector<member>{{1, 2}, {2, 1}}, t);
  check_cover(two, 2);
  CHECK(two[0].max == 69);
}

TEST_CASE("length buckets: whatever joins, leaves and comes, they are in order and cover every length") {
  std::mt19937_64 random(3);
  length_buckets b({30s, 5s, 200, 500});
  clock_point t{100s};
  for (int step = 0; step < 400; ++step) {
    t += std::chrono::milliseconds(random() % 9'000);
    std::vector<member> groups;
    for (std::uint64_t g = 0; g < random() % 8; ++g)
      groups.push_back({random() % 20, 1 + static_cast<std::uint32_t>(random() % 3)});
    for (std::uint64_t i = 0; i < random() % 200; ++i) b.placed(random() % 7 == 0 ? no_limit / 3 : random() % 5'000, t);
    check_cover(b.ranges(groups, t), groups.size());
    CHECK(b.lengths() <= 500);
  }
}

TEST_CASE(
    "length buckets: the same work within a factor of two, for Zipf and log-normal lengths, with any membership") {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> log_normal(6, 1);
  std::uniform_real_distribution<double> uniform(1e-4, 1);
  const auto zipf = [&] { return std::min(5'000.0, 20 / uniform(random)); };
  for (int kind = 0; kind < 2; ++kind) {
    length_buckets b({});
    clock_point t{100s};
    std::vector<member> groups{{1, 1}, {2, 1}, {3, 1}};
    for (const std::size_t count : {3U, 5U, 2U, 4U}) {
      groups.resize(2);
      while (groups.size() < count) groups.push_back({groups.size() + 1, 1});
      std::vector<double> work(count, 0.0);
      for (int i = 0; i < 6'000; ++i) {
        t += 5ms;
        const auto tokens = static_cast<std::uint64_t>(kind == 0 ? log_normal(random) : zipf()) + 1;
        const auto ranges = b.ranges(groups, t);
        std::size_t to = count;
        for (std::size_t g = 0; g < count; ++g)
          if (ranges[g].min <= tokens && tokens <= ranges[g].max && (to == count || work[g] < work[to])) to = g;
        REQUIRE(to < count);
        b.placed(tokens, t);
        if (i >= 2'000) work[to] += static_cast<double>(tokens);
      }
      double all = 0;
      for (const auto w : work) all += w;
      for (const auto w : work) {
        CHECK(w < 2 * all / static_cast<double>(count));
        CHECK(w > all / static_cast<double>(count) / 2);
      }
    }
  }
}

/// Two PD groups and the plugin under test.
struct bench : plugin_bench {
  std::unique_ptr<scorer> by;
  explicit bench(std::string_view json, unsigned groups = 2) : by(make_plugin<scorer>("scorer-pd-bucket", json)) {
    leg = serving_leg::prefill;
    request.block_size = 16;
    for (unsigned g = 1; g <= groups; ++g) {
      add("p" + std::to_string(g), roles::Prefill, "g" + std::to_string(g));
      add("d" + std::to_string(g), roles::Decode, "g" + std::to_string(g));
      all.pop_back();
    }
  }
  std::string for_length(std::uint32_t tokens) {
    request.prompt_tokens = tokens;
    request.blocks = tokens / 16;
    return kept(*by->filters());
  }
};

TEST_CASE("pd-bucket declared: ranges bind; a group without one takes any; too long for all goes nowhere") {
  bench b(
      R"({"mode": "declared", "ranges": [{"group": "g1", "max": 1000}, {"group": "g2", "min": 1001, "max": 8000}]})",
      2);
  CHECK(b.for_length(0) == "p1 ");
  CHECK(b.for_length(1'000) == "p1 ");
  CHECK(b.for_length(1'001) == "p2 ");
  CHECK(b.for_length(8'001) == "");
  // An empty range: the next longer one, never a shorter one.
  b.all.erase(b.all.begin());
  CHECK(b.for_length(10) == "p2 ");
  b.all.clear();
  b.add("p1", roles::Prefill, "g1");
  CHECK(b.for_length(5'000) == "");
  b.add("p3", roles::Prefill, "g3");
  CHECK(b.for_length(5'000) == "p3 ");
  CHECK(b.for_length(5) == "p1 p3 ");
  // Engines that do both come before another range.
  b.all.clear();
  b.add("p2", roles::Prefill, "g2");
  b.add("both");
  b.all.pop_back();
  CHECK(b.for_length(10) == "");
  b.all.clear();
  b.add("both");
  b.add("d1", roles::Decode, "g1");
  b.leg = serving_leg::decode;
  --b.turn;  // of the same decision
  CHECK(b.kept(*b.by->filters()) == "both ");
  CHECK(b.for_length(10) == "both d1 ");
  CHECK(b.for_length(5'000) == "both ");
}

TEST_CASE("pd-bucket: where a range is much busier, the next longer one helps, never a shorter one") {
  bench b(R"({"mode": "declared", "ranges": [{"group": "g1", "max": 1000}, {"group": "g2", "min": 1001, "max": 8000},
             {"group": "g3", "min": 8001}]})",
          3);
  b.all[0].load.prefill_tokens = 9'000;
  CHECK(b.for_length(500) == "p1 p2 ");
  b.all[1].load.prefill_tokens = 100;
  b.all[0].load.prefill_tokens = 8'192;
  CHECK(b.for_length(500) == "p1 ");  // the gap has to be larger than that
  b.all[0].load.prefill_tokens = 90'000;
  b.all[1].load.prefill_tokens = 90'000;
  CHECK(b.for_length(500) == "p1 ");  // the neighbour is no better, and only the neighbour may help
  b.all[1].load.prefill_tokens = b.all[2].load.prefill_tokens = 70'000;
  CHECK(b.for_length(500) == "p1 ");  // not 1.5 times as busy
  b.all[1].load.prefill_tokens = 59'000;
  CHECK(b.for_length(500) == "p1 p2 ");
  b.all[0].load.prefill_tokens = 0;
  CHECK(b.for_length(5'000) == "p2 ");
  b.all[2].load.prefill_tokens = 1'000'000;
  CHECK(b.for_length(9'000) == "p3 ");
  bench alone(R"({"mode": "declared", "spill": false,
                  "ranges": [{"group": "g1", "max": 1000}, {"group": "g2", "min": 1001}]})");
  alone.all[0].load.prefill_tokens = 1'000'000;
  CHECK(alone.for_length(500) == "p1 ");
}

TEST_CASE("pd-bucket learned: an engine that caches a long prompt may take it as a short one") {
  bench b(R"({"bucketSeparateLength": 1000})");
  CHECK(b.by->uses_cache());
  CHECK(b.for_length(999) == "p1 ");
  CHECK(b.for_length(1'000) == "p2 ");
  b.all[0].held_blocks = 990;
  CHECK(b.for_length(16'000) == "p1 p2 ");
  // alpha * own + beta * waiting: p1 160 + 2 * 500, p2 16000; of the largest.
  b.all[0].load.prefill_tokens = 500;
  check_scores(b.score(*b.by), {1 - 1'160 / 16'000.0, 0});
  b.all[0].load.prefill_tokens = 0;
  b.all[0].held_blocks = 1'000;
  b.all.pop_back();
  check_scores(b.score(*b.by), {1});
}

TEST_CASE("pd-bucket learned: boundaries follow what is placed, and a retry without an engine does not move them") {
  bench b("{}");
  b.for_length(10);
  for (int i = 0; i < 40; ++i) {
    b.request.prompt_tokens = i % 10 == 0 ? 9'000 : 1'000;
    b.by->routed(b.context(), b.all[0]);
  }
  b.now += std::chrono::seconds(6);
  // 36 of 1000 and 4 of 9000: as much work each.
  CHECK(b.for_length(999) == "p1 ");
  CHECK(b.for_length(1'000) == "p1 p2 ");
  CHECK(b.for_length(1'001) == "p2 ");
  CHECK(b.for_length(9'000) == "p2 ");
  b.all.pop_back();
  CHECK(b.for_length(9'000) == "p1 ");
  bench down("{}");
  down.all.erase(down.all.begin());
  CHECK(down.for_length(10) == "p2 ");
}

TEST_CASE("pd-bucket: the decode engine with the most free KV blocks") {
  bench b("{}");
  b.leg = serving_leg::decode;
  b.all[0].load.kv_usage = 0.3;
  check_scores(b.score(*b.by), {0.7, not_measured});
}

TEST_CASE("pd-bucket random: by chance, within the range") {
  bench b(R"({"mode": "random", "ranges": [{"group": "g1", "max": 1000}, {"group": "g2", "max": 1000},
             {"group": "g3", "min": 1001}]})",
          3);
  CHECK_FALSE(b.by->uses_cache());
  CHECK(b.for_length(10) == "p1 p2 ");
  std::set<bool> first_is_better;
  for (int i = 0; i < 50; ++i) {
    const auto s = b.score(*b.by);
    for (const auto one : s) CHECK((one >= 0 && one <= 1));
    first_is_better.insert(s[0] > s[1]);
  }
  CHECK(first_is_better.size() == 2);
}

TEST_CASE("pd-bucket: mistakes in its parameters") {
  CHECK(refused("scorer-pd-bucket", R"({"mode": "declared"})") == "parameters.ranges: at least one, for mode declared");
  CHECK(refused("scorer-pd-bucket", R"({"ranges": [{"group": "g"}]})") == "parameters.ranges: not in mode learned");
  CHECK(refused("scorer-pd-bucket", R"({"mode": "declared", "ranges": [{"group": "g", "min": 5, "max": 4}]})") ==
        "parameters.ranges[0].max: at least min");
  CHECK(refused("scorer-pd-bucket", R"({"decayfactor": 1})").find("did you mean \"decayFactor\"") != std::string::npos);
}

TEST_CASE("pd-bucket learned: each model's boundaries are its own, and there is a bound to the models") {
  bench b("{}");
  const auto place = [&] {
    for (int i = 0; i < 40; ++i) {
      b.request.prompt_tokens = i % 10 == 0 ? 9'000 : 1'000;
      b.by->routed(b.context(), b.all[0]);
    }
  };
  b.for_length(10);
  place();
  b.model.model = "other";
  b.for_length(10);
  b.now += std::chrono::seconds(6);
  CHECK(b.for_length(500) == "p2 ");  // still the first split, at 200
  b.model.model = "m";
  CHECK(b.for_length(500) == "p1 ");  // learned: 1,000
  for (int i = 0; i < 64; ++i) {
    b.model.model = "m" + std::to_string(i);
    b.for_length(10);
  }
  b.model.model = "m";
  CHECK(b.for_length(500) == "p2 ");  // forgotten with the others
}

TEST_CASE("pd-bucket goes by the words of filter-by-pd-label, whichever comes first") {
  bench b(R"({"mode": "declared", "ranges": [{"group": "east", "max": 1000}, {"group": "west", "min": 1001}]})", 0);
  const auto labelled = [&](std::string name, std::string role, std::string group) {
    b.add(std::move(name)).labels = {{"team", std::move(group)}, {"work", std::move(role)}};
  };
  labelled("pe", "P", "east");
  labelled("pw", "P", "west");
  CHECK(b.for_length(10) == "pe pw ");  // no group known by the usual words: any range
  const auto words = make_plugin<filter>("filter-by-pd-label",
                                         R"({"pdLabelName": "work", "pdGroupLabelName": "team", "prefillValue": "P"})");
  b.by->meet(*make_plugin<picker>("max-score-picker"));
  b.by->meet(*words);
  b.by->meet(*make_plugin<filter>("filter-by-pd-label"));  // the first one counts
  CHECK(b.for_length(10) == "pe ");
  CHECK(b.for_length(5'000) == "pw ");
}

}  // namespace
}  // namespace infernex::router
