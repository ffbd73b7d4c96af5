#include <doctest/doctest.h>

#include "actors/router/policy.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

/// Two engines of 1,000 blocks of 16 tokens: 0.05 ms a prompt token, 10 ms a token and 0.01 ms a block in use, answers
/// of 100 tokens.
struct fleet_of_two {
  load_board loads{4};
  model_endpoints of{"m", {}};
  std::unique_ptr<scheduler> by;
  std::vector<overlap> found;

  explicit fleet_of_two(boost::json::object parameters) {
    for (const auto* name : {"e0", "e1"}) {
      endpoint e;
      e.instance = name;
      e.state = fb::EngineState::Ready;
      e.slot = *loads.acquire();
      e.block_size = 16;
      e.total_blocks = 1'000;
      loads.learn(e.slot, {20.0F, 0.05F, 10.0F, 0.01F, 100.0F, 12.0F, 100.0F});
      of.endpoints.push_back(e);
    }
    scheduler_spec spec;
    spec.name = "infernex";
    spec.plugins = {{"latency", "predicted-latency-scorer", std::move(parameters)}, {"least", "picker-min-random", {}}};
    spec.profiles = {{"default", {{"latency"}, {"least"}}}};
    by = make_scheduler(spec);
  }
  /// A prompt of 1,600 tokens, 100 blocks.
  const decision& decide() {
    placement p;
    p.request_id = "r";
    p.prompt_tokens = 1'600;
    p.block_size = 16;
    p.blocks = 99;
    return by->decide(p, &of, loads, {true, {}, found, {}}, now);
  }
  double cost_of(std::string_view instance) {
    const auto& d = decide();
    for (const auto& one : d.serving.ranked)
      if (one.to->instance == instance) return one.total;
    return -1;
  }
};

TEST_CASE("predicted latency: tokens ahead and its own that are not cached, at the learned speed") {
  fleet_of_two f({{"decodeWeight", 0}, {"othersWeight", 0}});
  CHECK(f.cost_of("e0") == doctest::Approx(0.05 * 1'600));
  f.loads.reserve(f.of.endpoints[0].slot, {2, 4'000, 100});
  CHECK(f.cost_of("e0") == doctest::Approx(0.05 * 5'600));
  CHECK(f.decide().serving.ranked.front().to->instance == "e1");
  f.found = {{"e0", 50}};
  CHECK(f.cost_of("e0") == doctest::Approx(0.05 * (4'000 + 1'600 - 50 * 16)));
  f.found = {{"e0", 50, 0, 50}};  // in the host's memory
  CHECK(f.cost_of("e0") == doctest::Approx(0.05 * (4'000 + 1'600 - 0.8 * 50 * 16)));
}

TEST_CASE("predicted latency: decoding slows down with the KV blocks in use") {
  fleet_of_two f({{"decodeWeight", 0.5}, {"othersWeight", 0}});
  f.loads.reserve(f.of.endpoints[1].slot, {3, 0, 300});
  CHECK(f.cost_of("e0") == doctest::Approx(80 + 0.5 * 100 * (10 + 0.01 * 100)));
  CHECK(f.cost_of("e1") == doctest::Approx(80 + 0.5 * 100 * (10 + 0.01 * 400)));
}

TEST_CASE("predicted latency: an engine without room makes it wait until others have ended") {
  fleet_of_two f({{"decodeWeight", 0}, {"othersWeight", 0}, {"headroom", 1}});
  f.loads.reserve(f.of.endpoints[1].slot, {9, 0, 1'100});
  // 1,200 blocks for 1,000: a fifth of an answer of 100 tokens of 10 + 12 ms.
  CHECK(f.cost_of("e1") == doctest::Approx(80 + 0.2 * 100 * 22));
}

TEST_CASE("predicted latency: an engine of which nothing is known counts as the mean of the others") {
  fleet_of_two f({{"decodeWeight", 0}, {"othersWeight", 0}});
  f.loads.learn(f.of.endpoints[0].slot, {});
  f.loads.learn(f.of.endpoints[1].slot, {1.0F, 0.2F, 1.0F, 0.0F, 1.0F, 1.0F, 1.0F});
  CHECK(f.cost_of("e0") == doctest::Approx(0.2 * 1'600));
  f.loads.learn(f.of.endpoints[1].slot, {});
  CHECK(f.cost_of("e0") == doctest::Approx(0.02 * 1'600));  // the default
}

TEST_CASE("KV headroom: the share of blocks left with the prompt in them, below 0 where it would not fit") {
  fleet_of_two f({});
  scheduler_spec spec;
  spec.name = "headroom";
  spec.plugins = {{"headroom", "kv-headroom-scorer", {}}};
  spec.profiles = {{"default", {{"headroom"}}}};
  f.by = make_scheduler(spec);
  f.loads.reserve(f.of.endpoints[0].slot, {3, 0, 400});
  CHECK(f.cost_of("e0") == doctest::Approx(1 - 500.0 / 1'000));
  CHECK(f.cost_of("e1") == doctest::Approx(1 - 100.0 / 1'000));
  CHECK(f.decide().serving.ranked.front().to->instance == "e1");
  f.loads.reserve(f.of.endpoints[1].slot, {9, 0, 1'000});
  CHECK(f.cost_of("e1") == doctest::Approx(-0.1));
  f.of.endpoints[1].total_blocks.reset();  // not said: as the others
  CHECK(f.cost_of("e1") == doctest::Approx(0.5));
}

}  // namespace
}  // namespace infernex::router
