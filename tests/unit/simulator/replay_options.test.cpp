#include "actors/simulator/replay_options.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::simulator;

namespace {

std::string why(const fleet_options& options) {
  const auto fleet = replay_fleet_of(options, {});
  return fleet ? std::string() : fleet.failure().detail;
}

}  // namespace

TEST_CASE("a fleet of aggregated engines, with failures, additions and slow ones") {
  settings each;
  each.speed = 3;
  const auto fleet = replay_fleet_of(
      {.engines = 3, .failures = {"0@1.5", "3@90"}, .additions = {"60", "aggregated@70"}, .slow = {"1=2"}}, each);
  REQUIRE(fleet.ok());
  REQUIRE(fleet->size() == 5);
  CHECK((*fleet)[0].dies_ms == 1500);
  CHECK((*fleet)[1].speed == 1.5);
  CHECK((*fleet)[1].dies_ms == replay_engine::never);
  CHECK((*fleet)[2].speed == 3);
  CHECK((*fleet)[2].starts_ms == 0);
  CHECK((*fleet)[3].starts_ms == 60'000);
  CHECK((*fleet)[3].dies_ms == 90'000);
  CHECK((*fleet)[4].starts_ms == 70'000);
  for (const auto& one : *fleet) CHECK(one.role == replay_role::aggregated);
}

TEST_CASE("a fleet of prefill and decode engines") {
  const auto fleet = replay_fleet_of({.engines = 9, .prefill = 1, .decode = 2, .additions = {"5", "prefill@6"}}, {});
  REQUIRE(fleet.ok());
  REQUIRE(fleet->size() == 5);
  CHECK((*fleet)[0].role == replay_role::prefill);
  CHECK((*fleet)[1].role == replay_role::decode);
  CHECK((*fleet)[2].role == replay_role::decode);
  CHECK((*fleet)[3].role == replay_role::decode);
  CHECK((*fleet)[4].role == replay_role::prefill);
}

TEST_CASE("what makes no fleet is refused, with the option and what it should be") {
  CHECK(why({.engines = 0}) == "from 1 to 4096 engines");
  CHECK(why({.engines = 4096, .additions = {"1"}}) == "from 1 to 4096 engines");
  CHECK(why({.prefill = 1}) == "--prefill and --decode: at least one engine of each");
  for (const std::string bad : {"3@1", "-1@1", "0@", "0@x", "0", "0@-1", "0@inf", "@", "x@1"})
    CHECK(why({.engines = 3, .failures = {bad}}) == "--fail " + bad + ": ENGINE@SECONDS, engines are 0..2");
  for (const std::string bad : {"0=0", "0=-2", "0=", "3=2", "0=nan", "0@2"})
    CHECK(why({.engines = 3, .slow = {bad}}) ==
          "--slow " + bad + ": ENGINE=FACTOR (2: half as fast), engines are 0..2");
  for (const std::string bad : {"", "x", "-1", "router@3", "prefill@"})
    CHECK(why({.additions = {bad}}) ==
          "--add " + bad + ": SECONDS, or ROLE@SECONDS with prefill, decode or aggregated");
  CHECK(why({.additions = {"decode@3"}}).find("or aggregated ones") != std::string::npos);
  CHECK(why({.prefill = 1, .decode = 1, .additions = {"aggregated@3"}}).find("or aggregated ones") !=
        std::string::npos);
}

TEST_CASE("the fleet in words") {
  CHECK(describe_fleet({.engines = 1}) == "1 engine");
  CHECK(describe_fleet({.engines = 8, .failures = {"2@30"}, .slow = {"0=2", "1=3"}}) ==
        "8 engines, lost 2@30, slow 0=2 1=3");
  CHECK(describe_fleet({.prefill = 4, .decode = 2, .additions = {"9"}}) == "4 prefill + 2 decode engines, added at 9");
}

TEST_CASE("an engine takes the trace's block size, keeps its memory, and grows its context to the trace") {
  trace requests(512);
  requests.add({.prompt_tokens = 900, .output_tokens = 200});
  settings engine;
  engine.block_size = 16;
  engine.total_blocks = 100;
  engine.max_model_len = 1000;
  fit_engine(engine, 512, requests);
  CHECK(engine.block_size == 512);
  CHECK(engine.total_blocks == 3);
  CHECK(engine.max_model_len == 1100);
  requests.add({.prompt_tokens = 9000, .output_tokens = 200});
  fit_engine(engine, 512, requests);
  CHECK(engine.max_model_len == 1536);  // all the memory there is
  engine.max_model_len = 5000;
  fit_engine(engine, 512, requests);
  CHECK(engine.max_model_len == 5000);
}

TEST_CASE("full load is found from either side") {
  int asked = 0;
  const auto falls_at = [&asked](double limit) {
    return [limit, &asked](double rate) {
      ++asked;
      return rate <= limit ? 0.97 : 0.90;
    };
  };
  for (const double limit : {0.4, 3.0, 77.0}) {
    asked = 0;
    const auto found = full_rate(falls_at(limit), 5);
    REQUIRE(found);
    CHECK(*found <= limit);
    CHECK(*found * 1.02 >= limit);
    CHECK(asked < 20);
  }
  CHECK_FALSE(full_rate([](double) { return 0.5; }, 5));
  CHECK_FALSE(full_rate([](double) { return 1.0; }, 5));
}
