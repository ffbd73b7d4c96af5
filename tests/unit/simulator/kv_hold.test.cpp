#include <algorithm>

#include <doctest/doctest.h>

#include "actors/simulator/step_model.hpp"

using namespace infernex;
using namespace infernex::simulator;

namespace {

settings small() {
  settings values;
  values.block_size = 4;
  values.total_blocks = 16;
  values.max_model_len = 64;
  values.max_num_seqs = 4;
  values.max_num_batched_tokens = 64;
  return values;
}

std::vector<token_id> prompt_of(std::size_t count, token_id first = 'a') {
  std::vector<token_id> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<token_id>(i % 26);
  return tokens;
}

sequence_request ask(sequence_id id, std::vector<token_id> prompt, std::uint32_t max_tokens) {
  auto source = generator::random(1, "m", prompt, 0);
  return {.id = id, .prompt = std::move(prompt), .max_tokens = max_tokens, .salt = {}, .source = std::move(source)};
}

/// Cached tokens of the first sequence that ends, and all events.
struct ran {
  std::uint32_t cached = 0;
  std::vector<kv_event> events;
};
ran run(step_model& model) {
  ran all;
  for (int steps = 0; steps < 1'000; ++steps) {
    const auto plan = model.begin_step();
    if (!plan) return all;
    auto output = model.end_step();
    for (const auto& token : output.tokens) all.cached = token.cached_tokens;
    std::move(output.events.begin(), output.events.end(), std::back_inserter(all.events));
    if (plan->prefill_tokens == 0 && plan->decoding == 0) return all;
  }
  FAIL("never ends");
  return all;
}

}  // namespace

TEST_CASE("a prefill's whole blocks stay held at its end, and are a cache once they are released") {
  step_model model(small(), 1);
  auto request = ask(1, prompt_of(11), 1);
  request.hold = true;
  REQUIRE(model.add(std::move(request)) == errc::none);
  run(model);
  REQUIRE(model.held(1));
  CHECK(model.held(1)->blocks.size() == 2);
  CHECK(model.cache().used() == 2);
  CHECK(model.load().running == 0);
  model.release(1);
  model.release(1);  // once is enough
  CHECK_FALSE(model.held(1));
  CHECK(model.cache().used() == 0);
  REQUIRE(model.add(ask(2, prompt_of(11), 1)) == errc::none);
  CHECK(run(model).cached == 8);
}

TEST_CASE("a prefill that is aborted or ends by itself holds nothing") {
  step_model model(small(), 1);
  auto request = ask(1, prompt_of(11), 3);
  request.hold = true;
  REQUIRE(model.add(request) == errc::none);
  REQUIRE(model.begin_step());
  model.end_step();
  model.abort(1);
  CHECK(model.cache().used() == 0);
  request.source = generator::echo({});
  REQUIRE(model.add(request) == errc::none);
  run(model);
  CHECK_FALSE(model.held(1));
  CHECK(model.cache().used() == 0);
}

TEST_CASE("blocks are reserved, filled from elsewhere, and found by the sequence they came for") {
  step_model model(small(), 1);
  const auto* hold = model.reserve(7, prompt_of(12), {});
  REQUIRE(hold);
  CHECK(hold->blocks.size() == 2);  // the last token is computed here, and with it its block
  CHECK(hold->cached == 0);
  CHECK(model.take_events().empty());
  model.fill(7);
  const auto told = model.take_events();
  REQUIRE(told.size() == 1);
  CHECK(std::get<blocks_stored>(told[0]).hashes.size() == 2);
  CHECK(std::get<blocks_stored>(told[0]).tokens.size() == 8);
  auto request = ask(8, prompt_of(12), 2);
  request.remote_tokens = 8;
  REQUIRE(model.add(std::move(request)) == errc::none);
  REQUIRE(model.begin_step()->prefill_tokens == 4);
  CHECK(model.end_step().tokens.at(0).cached_tokens == 8);
  model.release(7);
  run(model);
  CHECK(model.cache().used() == 0);
  CHECK(model.load().prefix_hits == 0);
  CHECK(model.load().external_hits == 8);
  CHECK(model.load().external_queries == 12);

  const auto* again = model.reserve(9, prompt_of(12), {});
  CHECK(again->cached == 2);
  model.fill(9);
  CHECK(model.take_events().empty());
  model.release(9);
}

TEST_CASE("a reservation that finds no memory holds nothing") {
  step_model model(small(), 1);
  REQUIRE(model.reserve(1, prompt_of(40), {}));
  CHECK(model.cache().used() == 9);
  CHECK_FALSE(model.reserve(2, prompt_of(40, 'A'), {}));
  CHECK(model.cache().used() == 9);
  model.release(1);
  CHECK(model.reserve(2, prompt_of(40, 'A'), {}));
}

TEST_CASE("what waits for memory that is held makes an empty step, and runs when it is free") {
  step_model model(small(), 1);
  REQUIRE(model.reserve(1, prompt_of(50), {}));  // 12 of 16 blocks
  REQUIRE(model.add(ask(2, prompt_of(30, 'A'), 2)) == errc::none);
  const auto plan = model.begin_step();
  REQUIRE(plan);
  CHECK(plan->prefill_tokens == 0);
  CHECK(plan->decoding == 0);
  CHECK(model.end_step().tokens.empty());
  CHECK(model.load().waiting == 1);
  model.release(1);
  run(model);
  CHECK(model.load().waiting == 0);
}

TEST_CASE("after a reset of the cache nothing is stored whose parent is forgotten") {
  step_model model(small(), 1);
  REQUIRE(model.add(ask(1, prompt_of(6), 1)) == errc::none);
  run(model);
  REQUIRE(model.reserve(2, prompt_of(12), {})->cached == 1);
  model.reset_prefix_cache();
  const auto reset = model.take_events();
  REQUIRE(reset.size() == 1);
  CHECK(std::holds_alternative<all_blocks_cleared>(reset[0]));
  model.fill(2);
  CHECK(model.take_events().empty());
  REQUIRE(model.add(ask(3, prompt_of(12), 1)) == errc::none);
  CHECK(run(model).cached == 0);
  model.release(2);
  CHECK(model.cache().used() == 0);
}

TEST_CASE("who was preempted is known by id") {
  auto values = small();
  values.total_blocks = 5;
  step_model model(values, 1);
  REQUIRE(model.add(ask(1, prompt_of(7), 9)) == errc::none);
  REQUIRE(model.add(ask(2, prompt_of(7, 'A'), 9)) == errc::none);
  std::vector<sequence_id> preempted;
  while (model.begin_step()) {
    for (const auto id : model.preempted()) preempted.push_back(id);
    model.end_step();
  }
  CHECK(preempted == std::vector<sequence_id>{2});
}
