#include "actors/simulator/replay_trace.hpp"

#include <set>

#include <doctest/doctest.h>

using namespace infernex::simulator;

namespace {

std::vector<std::uint64_t> keys_of(std::span<const std::uint64_t> blocks) { return {blocks.begin(), blocks.end()}; }

/// Three requests at 1000, 1600 and 2000 ms: a span of 1000 ms, mean gap 500 ms.
trace three() {
  trace all(512);
  const std::vector<std::uint64_t> long_prompt{7, 8, 9}, short_prompt{7};
  all.add({.arrival_ms = 1600, .prompt_tokens = 600, .output_tokens = 2, .blocks = short_prompt});
  all.add({.arrival_ms = 1000,
           .prompt_tokens = 1500,
           .output_tokens = 3,
           .blocks = long_prompt,
           .tenant = 4,
           .priority = -1,
           .session = 5});
  all.add({.arrival_ms = 2000});
  all.arrange();
  return all;
}

}  // namespace

TEST_CASE("a trace holds requests by their arrival, the first at 0") {
  const auto all = three();
  REQUIRE(all.size() == 3);
  CHECK(all.block_tokens() == 512);
  CHECK(all.span_ms() == 1000);
  CHECK(all.total_blocks() == 4);
  CHECK(all[0].arrival_ms == 0);
  CHECK(all[0].prompt_tokens == 1500);
  CHECK(all[0].output_tokens == 3);
  CHECK(keys_of(all[0].blocks) == std::vector<std::uint64_t>{7, 8, 9});
  CHECK(all[0].tenant == 4);
  CHECK(all[0].priority == -1);
  CHECK(all[0].session == 5);
  CHECK(all[1].arrival_ms == 600);
  CHECK(keys_of(all[1].blocks) == std::vector<std::uint64_t>{7});
  CHECK(all[2].arrival_ms == 1000);
  CHECK(all[2].blocks.empty());
}

TEST_CASE("an empty trace has no span, and one request repeats at once") {
  trace none;
  none.arrange();
  CHECK(none.span_ms() == 0);
  CHECK(repeated_trace(none, 3).size() == 0);
  CHECK(repeated_trace(none, 3).span_ms() == 0);
  trace one;
  one.add({.arrival_ms = 9});
  one.arrange();
  CHECK(repeated_trace(one, 3).span_ms() == 0);
  CHECK(repeated_trace(one, 3).requests_per_second() == 0);
}

TEST_CASE("a repetition starts one mean gap after the end of the one before, all of it at the asked rate") {
  const auto all = three();
  const repeated_trace twice(all, 2, 2.0);
  REQUIRE(twice.size() == 6);
  // At rate 1: 0, 600, 1000 and the same 1500 later.
  const std::vector<double> expected{0, 300, 500, 750, 1050, 1250};
  repeated_trace::scratch blocks;
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(twice.arrival_ms(i) == doctest::Approx(expected[i]));
    CHECK(twice.get(i, blocks).arrival_ms == doctest::Approx(expected[i]));
  }
  CHECK(twice.span_ms() == doctest::Approx(1250));
  CHECK(twice.requests_per_second() == doctest::Approx(5 / 1.25));
}

TEST_CASE("repetitions share nothing, but share within themselves what the trace shares") {
  const auto all = three();
  const repeated_trace many(all, 50);
  std::set<std::uint64_t> keys, sessions;
  repeated_trace::scratch blocks, others;
  for (std::size_t repetition = 0; repetition < 50; ++repetition) {
    const auto first = many.get(repetition * 3, blocks);
    const auto second = many.get(repetition * 3 + 1, others);
    REQUIRE(first.blocks.size() == 3);
    REQUIRE(second.blocks.size() == 1);
    CHECK(first.blocks[0] == second.blocks[0]);
    CHECK(second.session == 0);
    CHECK(first.tenant == 4);
    keys.insert(first.blocks.begin(), first.blocks.end());
    sessions.insert(first.session);
  }
  CHECK(keys.size() == 150);
  CHECK(sessions.size() == 50);
  CHECK(keys_of(many.get(0, blocks).blocks) == std::vector<std::uint64_t>{7, 8, 9});
}
