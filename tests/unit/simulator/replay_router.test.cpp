#include "actors/simulator/replay_router.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::simulator;

namespace {

/// Two engines, one request at a time, and how many of the last twenty go to the first of them. It takes so many
/// milliseconds a prompt token, the other 0.25; both answer with 512 tokens, 20 ms each. `moved`: the first one's
/// requests are said to have been another's before.
int share_of_first(double ms_a_token, bool moved) {
  std::vector<replay_engine_settings> engines(2);
  const indexer::kv_index index({2, 1 << 20});
  replay_fleet fleet;
  fleet.engines = engines;
  fleet.index = &index;
  fleet.block_tokens = engines[0].engine.block_size;
  router::policy how;
  how.strategy = "infernex";
  const auto policy = router_policy(how, {})(fleet, 1);
  policy->engine_up(0, 0);
  policy->engine_up(1, 0);
  int share = 0;
  constexpr int requests = 60;
  for (int i = 0; i < requests; ++i) {
    const double now = 60'000.0 * i;
    replay_request request;
    request.id = static_cast<std::uint64_t>(i);
    request.prompt_tokens = i % 2 == 0 ? 200 : 800;
    const auto choice = policy->place(request, now);
    REQUIRE(choice);
    if (i >= requests - 20) share += choice->engine == 0;
    replay_progress told;
    told.id = request.id;
    told.choice = *choice;
    told.prompt_tokens = request.prompt_tokens;
    told.answered = 512;
    told.placed_ms = now;
    told.prefilled_ms = told.first_token_ms = now + (choice->engine == 0 ? ms_a_token : 0.25) * request.prompt_tokens;
    told.ended_ms = *told.first_token_ms + 20 * 511;
    told.moved = moved && choice->engine == 0;
    policy->prefilled(told, now + 30'000);
    policy->ended(told, now + 30'000);
  }
  return share;
}

}  // namespace

TEST_CASE("speeds are learned from requests of one engine, not from those that were moved") {
  CHECK(share_of_first(0.05, false) == 20);
  CHECK(share_of_first(12.5, false) == 0);
  // Nothing is known of it: as fast as the other, with the shorter answers that are presumed.
  CHECK(share_of_first(12.5, true) == 20);
}
