// One decision for pairs, decode engines alone and engines that do all: `infernex` and its parts.

#include <algorithm>
#include <random>

#include <doctest/doctest.h>

#include "actors/router/policy.hpp"
#include "tests/unit/router/plugin_fixture.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;

/// A model's engines: 0.05 ms a prompt token, 10 ms a token and 0.01 ms a block in use, answers of 100 tokens, 1,000
/// blocks of 16 tokens.
struct pd_fleet {
  static constexpr clock_point now{1'000s};
  load_board loads{64};
  model_endpoints of{"m", {}};
  std::vector<overlap> found;
  std::uint32_t tokens = 1'600;

  endpoint& add(const std::string& name, roles role, const std::string& group = {}) {
    endpoint e;
    e.instance = name;
    e.role = role;
    e.group = group;
    e.state = fb::EngineState::Ready;
    e.slot = *loads.acquire();
    e.block_size = 16;
    e.total_blocks = 1'000;
    loads.learn(e.slot, {20.0F, 0.05F, 10.0F, 0.01F, 100.0F, 12.0F, 100.0F});
    return of.endpoints.emplace_back(e);
  }
  void load(std::string_view name, load_share share) { loads.reserve(of.find(name)->slot, share); }
  const decision& decide(scheduler& by, scheduler::detail how_much = scheduler::detail::brief) {
    placement p;
    p.request_id = "r";
    p.prompt_tokens = tokens;
    p.block_size = 16;
    p.blocks = tokens / 16;
    return by.decide(p, &of, loads, {true, {}, found, {}}, now, how_much);
  }
};

std::unique_ptr<scheduler> strategy(std::string_view name) {
  policy how;
  how.strategy = name;
  return make_scheduler(spec_of(how));
}

/// `p0 > d0`, or the one engine.
std::string way_of(const decision& made) {
  if (made.serving.ranked.empty()) return "nobody";
  const auto& serving = made.serving.ranked.front().to->instance;
  return made.prefill.ranked.empty() ? serving : made.prefill.ranked.front().to->instance + " > " + serving;
}

TEST_CASE(
    "infernex: a pair while the decode engine is busy with answers, the decode engine alone where little is new") {
  pd_fleet f;
  f.add("d0", roles::Decode, "g");
  f.add("p0", roles::Prefill, "g");
  const auto by = strategy("infernex");
  // Idle: nobody is disturbed, and a pair is no faster.
  CHECK(way_of(f.decide(*by)) == "d0");
  f.load("d0", {40, 0, 400});
  CHECK(way_of(f.decide(*by)) == "p0 > d0");
  f.found = {{"d0", 99}};  // 16 tokens are new to it
  f.load("p0", {1, 5'000, 300});
  CHECK(way_of(f.decide(*by)) == "d0");
  CHECK(f.decide(*by).reason.find("d0 holds 99 of 100 blocks, computes 16 prompt tokens itself (cost ") !=
        std::string::npos);
  CHECK(f.decide(*by).reason.find(", with p0 ") != std::string::npos);
}

TEST_CASE("infernex-pd: pairs whatever the prompt, while there is a prefill engine") {
  pd_fleet f;
  f.add("d0", roles::Decode, "g");
  f.add("p0", roles::Prefill, "g");
  const auto by = strategy("infernex-pd");
  f.found = {{"d0", 99}};
  CHECK(way_of(f.decide(*by)) == "p0 > d0");
  // What it would cost alone is not said: it is none of the choices.
  CHECK(f.decide(*by).reason.find("p0 holds 0 of 100 blocks, prefills for d0 (cost ") != std::string::npos);
  CHECK(f.decide(*by).reason.find("alone") == std::string::npos);
  f.of.endpoints[1].state = fb::EngineState::Down;
  CHECK(way_of(f.decide(*by)) == "d0");
  CHECK(f.decide(*by).reason.find(", computes 16 prompt tokens itself, kv") != std::string::npos);
}

TEST_CASE("infernex: the cost is what the parts' costs add up to, for the pair and for the engine alone") {
  pd_fleet f;
  f.add("d0", roles::Decode, "g");
  f.add("p0", roles::Prefill, "g");
  f.load("d0", {10, 0, 400});
  f.load("p0", {2, 1'000, 200});
  const auto by = strategy("infernex");
  const auto& made = f.decide(*by);
  REQUIRE(made.weighed);
  CHECK(made.weighed->prefill->instance == "p0");
  // The prompt: 1,000 tokens ahead and 1,600 of its own, which delay two others; the answer: 100 tokens of 10 + 5 ms.
  const double prompt = 0.05 * 2'600 + 0.06 * 0.05 * 1'600 * 2;
  const double answer = 0.01 * 100 * (10 + 0.01 * 500);
  CHECK(made.weighed->as_pair == doctest::Approx(prompt + answer));
  // Half of the blocks are free, so that a stalled answer counts twice.
  const double stall = 0.12 / 0.5;
  CHECK(made.weighed->alone == doctest::Approx(0.05 * 1'600 * (1 + stall * 10) + answer));
  CHECK(made.serving.ranked.front().total == doctest::Approx(std::min(made.weighed->as_pair, made.weighed->alone)));
}

TEST_CASE("infernex: the best pair against the best engine that does all, in one decision") {
  pd_fleet f;
  f.add("a0", roles::Aggregated);
  f.add("d0", roles::Decode, "g");
  f.add("p0", roles::Prefill, "g");
  const auto by = strategy("infernex");
  f.load("a0", {4, 8'000, 300});
  f.load("d0", {40, 0, 400});
  CHECK(way_of(f.decide(*by)) == "p0 > d0");
  CHECK(f.decide(*by).serving.candidates == 2);
  f.load("p0", {4, 16'000, 300});
  CHECK(way_of(f.decide(*by)) == "a0");
  CHECK_FALSE(f.decide(*by).weighed);
  f.found = {{"p0", 100}};
  f.load("a0", {4, 16'000, 300});
  CHECK(way_of(f.decide(*by)) == "p0 > d0");
}

TEST_CASE("infernex: the pair of least cost among all of one group, whatever the fleet") {
  std::mt19937_64 random(11);
  const auto by = strategy("infernex-pd");
  for (int round = 0; round < 200; ++round) {
    pd_fleet f;
    const auto groups = 1 + random() % 4;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const auto group = "g" + std::to_string(random() % groups);
      const auto role = random() % 2 == 0 ? roles::Prefill : roles::Decode;
      f.add((role == roles::Prefill ? "p" : "d") + std::to_string(i), role, random() % 10 == 0 ? "" : group);
    }
    std::sort(f.of.endpoints.begin(), f.of.endpoints.end(),
              [](const auto& a, const auto& b) { return a.instance < b.instance; });
    for (const auto& e : f.of.endpoints) {
      const auto blocks = random() % 800;
      f.loads.reserve(e.slot, {static_cast<std::uint32_t>(random() % 30), random() % 20'000, blocks});
    }
    const auto prompt = [&](const endpoint& e) {
      const auto l = f.loads.read(e.slot, f.now);
      return 0.05 * static_cast<double>(l.prefill_tokens + f.tokens) + 0.06 * 0.05 * f.tokens * l.in_flight;
    };
    const auto answer = [&](const endpoint& e) {
      return 0.01 * 100 * (10 + 0.01 * static_cast<double>(f.loads.read(e.slot, f.now).active_blocks + 100));
    };
    // Of every decode engine by itself: no pair of one group is better than the one that was chosen.
    double least = 1e9;
    for (const auto& d : f.of.endpoints)
      for (const auto& p : f.of.endpoints)
        if (d.role == roles::Decode && p.role == roles::Prefill && !d.group.empty() && d.group == p.group)
          least = std::min(least, prompt(p) + answer(d));
    const auto& made = f.decide(*by);
    CAPTURE(made.reason);
    if (made.serving.ranked.empty() || made.prefill.ranked.empty()) continue;
    CHECK(made.prefill.ranked.front().to->group == made.serving.ranked.front().to->group);
    CHECK(made.prefill.ranked.front().total == doctest::Approx(prompt(*made.prefill.ranked.front().to)));
    CHECK(made.weighed->as_pair == doctest::Approx(least));
    for (const auto& one : made.prefill.ranked) CHECK(one.to->group == made.serving.ranked.front().to->group);
  }
}

TEST_CASE("a decode engine without room for the prompt's blocks is left out, unless all are") {
  plugin_bench b;
  b.request.prompt_tokens = 1'600;
  b.request.block_size = 16;
  for (const auto* name : {"d0", "d1", "d2", "a0"})
    b.add(name, name[0] == 'a' ? roles::Aggregated : roles::Decode, "g").total_blocks = 1'000;
  for (auto& e : b.endpoints) e.block_size = 16;
  const auto by = make_plugin<filter>("decode-room-filter");
  b.all[0].load.active_blocks = 800;  // with its own 100: 0.9
  b.all[1].load.active_blocks = 801;
  b.all[2].load.kv_usage = 0.85;  // as measured: answers take blocks too
  b.all[3].load.active_blocks = 2'000;
  CHECK(b.kept(*by) == "d0 a0 ");
  CHECK_FALSE(by->keeps_all(b.context(), b.all));
  CHECK(b.kept("decode-room-filter", R"({"share": 0.8})") == "a0 ");
  b.all.pop_back();
  CHECK(b.kept("decode-room-filter", R"({"share": 0.8})") == "d0 d1 d2 ");
  b.endpoints[1].total_blocks.reset();  // it does not say
  CHECK(b.kept(*by) == "d0 d1 ");
  b.all[2].load.kv_usage.reset();
  CHECK(by->keeps_all(b.context(), b.all));
}

TEST_CASE("SGLang's decode engines never compute a prompt: without a prefill engine of their group nobody answers") {
  pd_fleet f;
  f.add("d0", roles::Decode, "g").kv_transfer = kv_transfer{fb::KvProtocol::Sglang};
  f.add("d1", roles::Decode, "other").kv_transfer = kv_transfer{fb::KvProtocol::Sglang};
  f.add("p0", roles::Prefill, "g");
  const auto by = strategy("infernex");
  CHECK(way_of(f.decide(*by)) == "p0 > d0");
  CHECK(f.decide(*by).serving.candidates == 1);
  f.of.endpoints[2].state = fb::EngineState::Down;
  CHECK(way_of(f.decide(*by)) == "nobody");
}

TEST_CASE("least-load-pd takes over where there is no index and no router, on fleets of any kind") {
  policy how;
  how.strategy = "infernex";
  const auto by = make_scheduler(spec_without_cache(how));
  CHECK(by->name() == "least-load-pd");
  CHECK_FALSE(by->uses_cache());
  pd_fleet f;
  f.add("a0", roles::Aggregated);
  CHECK(way_of(f.decide(*by)) == "a0");
  f.load("a0", {9, 0, 0});
  f.add("d0", roles::Decode, "g");
  f.add("p0", roles::Prefill, "g");
  f.add("p1", roles::Prefill, "other");
  CHECK(way_of(f.decide(*by)) == "p0 > d0");
}

TEST_CASE("llm-d's handler makes no pair with an engine of no group") {
  pd_fleet f;
  f.add("d0", roles::Decode);
  f.add("p0", roles::Prefill, "g");
  const auto by = strategy("least-load-pd");
  CHECK(way_of(f.decide(*by)) == "d0");
}

TEST_CASE("an explanation of pairs lists all engines of both legs, and leaves chance as it was") {
  pd_fleet f;
  for (const auto* name : {"d0", "d1"}) f.add(name, roles::Decode, "g");
  for (const auto* name : {"p0", "p1"}) f.add(name, roles::Prefill, "g");
  const auto by = strategy("infernex-pd");
  const auto& made = f.decide(*by, scheduler::detail::every_candidate);
  CHECK(made.serving.ranked.size() == 2);
  CHECK(made.prefill.ranked.size() == 2);
  const auto first = way_of(made);
  for (int i = 0; i < 5; ++i) CHECK(way_of(f.decide(*by, scheduler::detail::every_candidate)) == first);
}

}  // namespace
}  // namespace infernex::router
