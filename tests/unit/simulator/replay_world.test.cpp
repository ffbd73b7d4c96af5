#include "actors/simulator/replay_world.hpp"

#include <cmath>
#include <map>
#include <numeric>

#include <doctest/doctest.h>

#include "actors/simulator/replay_router.hpp"

using namespace infernex;
using namespace infernex::simulator;

namespace {

constexpr std::uint32_t block = 16;

replay_engine_settings member(replay_role role = replay_role::aggregated, double speed = 1) {
  replay_engine_settings one;
  one.engine.block_size = block;
  one.engine.total_blocks = 1'024;
  one.engine.max_model_len = 8'192;
  one.engine.max_num_batched_tokens = 512;
  one.role = role;
  one.speed = speed;
  return one;
}

struct call {
  double at_ms = 0;
  std::uint32_t prompt = 1;
  std::uint32_t output = 1;
  std::uint64_t family = 0;
};

trace trace_of(const std::vector<call>& calls) {
  trace made(block);
  for (const auto& each : calls) {
    std::vector<std::uint64_t> blocks((each.prompt + block - 1) / block);
    std::iota(blocks.begin(), blocks.end(), each.family * 1'000'000);
    made.add({.arrival_ms = each.at_ms, .prompt_tokens = each.prompt, .output_tokens = each.output, .blocks = blocks});
  }
  made.arrange();
  return made;
}

/// Always these engines; keeps what it was told.
struct fixed_policy : replay_policy {
  struct log {
    std::map<std::uint64_t, replay_progress> ended;
    std::map<std::uint64_t, double> prefilled_known_ms;
    std::vector<std::uint64_t> elsewhere;
    std::vector<double> reports;
    std::map<std::uint64_t, int> placed;
  };
  fixed_policy(replay_choice to, log& tells) : choice(to), into(tells) {}
  void engine_up(std::uint32_t, double) override {}
  void engine_down(std::uint32_t down, double) override {
    if (down == choice.engine) choice.engine = down + 1;
    if (choice.decode == down) choice.decode = down + 1;
  }
  void load_reported(std::uint32_t, const engine_load&, double now_ms) override { into.reports.push_back(now_ms); }
  std::optional<replay_choice> place(const replay_request& request, double) override {
    ++into.placed[request.id];
    return choice;
  }
  void placed_elsewhere(const replay_progress& of, double) override { into.elsewhere.push_back(of.id); }
  void prefilled(const replay_progress& of, double now_ms) override { into.prefilled_known_ms[of.id] = now_ms; }
  void ended(const replay_progress& of, double) override { into.ended[of.id] = of; }
  replay_choice choice;
  log& into;
};

replay_policy_maker always(replay_choice to, fixed_policy::log& into) {
  return [to, &into](const replay_fleet&, std::uint64_t) { return std::make_unique<fixed_policy>(to, into); };
}

replay_summary play(const replay_settings& settings, const trace& requests, const replay_policy_maker& policy) {
  REQUIRE_FALSE(replay_world::check(settings, requests.block_tokens()));
  const repeated_trace once(requests);
  replay_statistics seen;
  replay_world world(settings, once, policy, seen);
  world.run();
  return seen.summary();
}

double prefill(std::uint64_t tokens) { return prefill_milliseconds({}, tokens); }
double decode(std::uint64_t attended) { return decode_milliseconds({}, attended, 1'024 * block); }

}  // namespace

TEST_CASE("one request alone: chunks, then a token a step, each as the formulas say") {
  replay_settings settings;
  settings.engines = {member()};
  settings.network_ms = 3;
  fixed_policy::log told;
  const auto got = play(settings, trace_of({{0, 700, 40}}), always({}, told));
  const auto first = prefill(512) + prefill(188);
  REQUIRE(got.ttft);
  CHECK(got.ttft->mean == doctest::Approx(first + 3));
  CHECK(unloaded_ttft_ms(settings.engines[0].engine, 2, 700) == doctest::Approx(first / 2));
  double rest = 0;
  for (std::uint64_t length = 701; length < 740; ++length) rest += decode(length);
  REQUIRE(got.end_to_end);
  CHECK(got.end_to_end->mean == doctest::Approx(first + rest + 3));
  REQUIRE(got.inter_token);
  CHECK(got.inter_token->count == 39);
  CHECK(got.inter_token->mean == doctest::Approx(rest / 39));
  CHECK(got.completed == 1);
  CHECK(got.output_tokens == 40);
}

TEST_CASE("a faster engine is as much faster") {
  replay_settings settings;
  settings.engines = {member(replay_role::aggregated, 4)};
  settings.network_ms = 0;
  fixed_policy::log told;
  CHECK(play(settings, trace_of({{0, 500, 1}}), always({}, told)).ttft->mean == doctest::Approx(prefill(500) / 4));
}

TEST_CASE("who comes in mid-step waits for its end, and then shares the next") {
  replay_settings settings;
  settings.engines = {member()};
  settings.network_ms = 0;
  fixed_policy::log told;
  // The second comes while the first decodes, in what would be quiet steps.
  const auto arrives = prefill(100) + decode(101) + 1;
  REQUIRE(decode(102) > 1);
  play(settings, trace_of({{0, 100, 10, 1}, {arrives, 200, 1, 2}}), always({}, told));
  const auto begins = prefill(100) + decode(101) + decode(102);
  REQUIRE(told.ended.at(1).first_token_ms);
  CHECK(*told.ended.at(1).first_token_ms == doctest::Approx(begins + prefill(200) + decode(103)));
}

TEST_CASE("two at the same moment run in the same step") {
  replay_settings settings;
  settings.engines = {member()};
  settings.network_ms = 0;
  fixed_policy::log told;
  const auto got = play(settings, trace_of({{0, 100, 1, 1}, {0, 60, 1, 2}}), always({}, told));
  CHECK(got.ttft->mean == doctest::Approx(prefill(160)));
}

TEST_CASE("a prefix that is cached is not computed again") {
  replay_settings settings;
  settings.engines = {member()};
  settings.network_ms = 0;
  fixed_policy::log told;
  const auto got =
      play(settings, trace_of({{0, 160, 1, 1}, {10'000, 320, 1, 1}, {20'000, 160, 1, 1}}), always({}, told));
  CHECK(told.ended.at(1).cached_tokens == 160);
  CHECK(*told.ended.at(1).first_token_ms == doctest::Approx(10'000 + prefill(160)));
  CHECK(told.ended.at(2).cached_tokens == 144);  // the last token is always computed
  CHECK(*got.hit_share == doctest::Approx((160 + 144) / 640.0));
}

TEST_CASE("prefill and decode apart: only what the decode engine lacks travels") {
  replay_settings settings;
  settings.engines = {member(replay_role::prefill), member(replay_role::decode)};
  settings.network_ms = 0;
  settings.transfer_latency_ms = 5;
  settings.transfer_bytes_per_token = 1'000;
  settings.transfer_bytes_per_ms = 10'000;  // ten tokens
  fixed_policy::log told;
  const auto got = play(settings, trace_of({{0, 320, 3, 1}, {10'000, 480, 1, 1}}), always({0, 1, 320}, told));
  const auto& first = told.ended.at(0);
  CHECK(*first.prefilled_ms == doctest::Approx(prefill(320)));
  CHECK(*first.first_token_ms == doctest::Approx(prefill(320) + 5 + 32 + decode(320)));
  CHECK(*first.ended_ms == doctest::Approx(*first.first_token_ms + decode(321) + decode(322)));
  CHECK(first.answered == 3);
  const auto& second = told.ended.at(1);
  CHECK(second.cached_tokens == 320);
  CHECK(*second.first_token_ms == doctest::Approx(10'000 + prefill(160) + 5 + 16 + decode(480)));
  CHECK(got.completed == 2);
  CHECK(got.inter_token->count == 2);
}

TEST_CASE("a failed engine's requests go elsewhere with what they were answered") {
  replay_settings settings;
  settings.engines = {member(), member()};
  settings.network_ms = 0;
  const auto tenth = prefill(160) + 9 * 5.74;  // some steps into the answer
  settings.engines[0].dies_ms = tenth;
  fixed_policy::log told;
  const auto got = play(settings, trace_of({{0, 160, 50, 1}, {0, 700, 5, 2}}), always({}, told));
  CHECK(told.placed.at(0) == 2);
  CHECK(told.placed.at(1) == 2);
  CHECK(got.completed == 2);
  CHECK(got.failed == 0);
  CHECK(got.output_tokens == 55);
  CHECK(told.ended.at(0).answered == 50);
  CHECK(told.ended.at(0).prompt_tokens > 160 - 1);
  CHECK(told.ended.at(0).choice.engine == 1);
  CHECK(told.ended.at(0).moved);
}

TEST_CASE("prefill and decode apart: whichever fails, its requests begin anew or go on elsewhere") {
  const auto transfer_starts = prefill(320);
  struct at {
    std::size_t engine;
    double ms;
    bool before_first_token;
  };
  for (const auto& dies :
       {at{0, transfer_starts / 2, true}, at{0, transfer_starts + 1, true}, at{2, transfer_starts / 2, true},
        at{2, transfer_starts + 1, true}, at{2, transfer_starts + 200, false}}) {
    replay_settings settings;
    settings.engines = {member(replay_role::prefill), member(replay_role::prefill), member(replay_role::decode),
                        member(replay_role::decode)};
    settings.network_ms = 0;
    settings.engines[dies.engine].dies_ms = dies.ms;
    fixed_policy::log told;
    const auto got = play(settings, trace_of({{0, 320, 100, 1}}), always({0, 2, 320}, told));
    CHECK(got.completed == 1);
    CHECK(got.output_tokens == 100);
    CHECK(told.placed.at(0) == 2);
    const auto& last = told.ended.at(0);
    CHECK(last.choice.engine == (dies.engine == 0 ? 1 : 0));
    CHECK(last.choice.decode == (dies.engine == 2 ? 3 : 2));
    CHECK((got.ttft->mean > dies.ms) == dies.before_first_token);
    CHECK((last.prompt_tokens == 320) == dies.before_first_token);
    CHECK(last.answered == 100);
    CHECK(last.moved);
  }
}

TEST_CASE("an engine that joins later takes requests from then on; nobody there: shed") {
  replay_settings settings;
  settings.engines = {member()};
  settings.engines[0].starts_ms = 1'000;
  const auto got = play(settings, trace_of({{0, 160, 5, 1}, {1'000, 160, 5, 2}}), router_policy(router::policy{}));
  CHECK(got.shed == 1);
  CHECK(got.completed == 1);
}

TEST_CASE("what an engine could never hold is shed") {
  replay_settings settings;
  settings.engines = {member()};
  fixed_policy::log told;
  const auto got = play(settings, trace_of({{0, 8'190, 5, 1}, {1, 10, 1, 2}}), always({}, told));
  CHECK(got.shed == 1);
  CHECK(got.completed == 1);
}

TEST_CASE("gateways tell at their time, and each replica learns what another has placed") {
  replay_settings settings;
  settings.engines = {member()};
  settings.routers = 2;
  settings.delays.life_interval_ms = 20;
  settings.delays.report_interval_ms = 100;
  fixed_policy::log told;
  play(settings, trace_of({{0, 100, 60, 1}, {500, 100, 60, 2}, {5'000, 1, 1, 3}}), always({}, told));
  CHECK(told.elsewhere == std::vector<std::uint64_t>{0, 1, 2});
  CHECK(std::fmod(told.prefilled_known_ms.at(0), 20) == doctest::Approx(0));
  CHECK(told.prefilled_known_ms.at(0) - prefill(100) < 20);
  CHECK(told.prefilled_known_ms.at(0) >= prefill(100));
  REQUIRE(told.reports.size() >= 100);  // both replicas, every 100 ms
  CHECK(told.reports[2] - told.reports[0] == doctest::Approx(100));
}

TEST_CASE("the router sends a known prefix where it is cached, spreads the rest, and is the same each time") {
  replay_settings settings;
  settings.engines.assign(4, member());
  std::vector<call> calls;
  for (int i = 0; i < 400; ++i)
    calls.push_back({i * 40.0, 200 + static_cast<std::uint32_t>(i * 37 % 900), 20 + static_cast<std::uint32_t>(i % 50),
                     static_cast<std::uint64_t>(i % 23)});
  const auto requests = trace_of(calls);
  router::policy how;
  const auto aware = play(settings, requests, router_policy(how));
  const auto again = play(settings, requests, router_policy(how));
  how.strategy = "round-robin";
  const auto blind = play(settings, requests, router_policy(how));
  CHECK(aware.completed == 400);
  CHECK(aware.ttft->mean == again.ttft->mean);
  CHECK(aware.end_to_end->mean == again.end_to_end->mean);
  CHECK(*aware.hit_share > *blind.hit_share);
  CHECK(aware.ttft->mean < blind.ttft->mean);

  settings.engines.assign(2, member(replay_role::prefill));
  settings.engines.push_back(member(replay_role::decode));
  settings.engines.push_back(member(replay_role::decode));
  settings.gateways = 4;
  settings.routers = 2;
  how.strategy = "infernex-pd";
  const auto apart = play(settings, requests, router_policy(how));
  CHECK(apart.completed == 400);
  CHECK(apart.ttft->mean == play(settings, requests, router_policy(how)).ttft->mean);
  settings.router_affinity = false;
  const auto drawn = play(settings, requests, router_policy(how));
  CHECK(drawn.completed == 400);
  CHECK(drawn.ttft->mean != apart.ttft->mean);
}
