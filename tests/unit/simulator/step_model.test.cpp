#include "actors/simulator/step_model.hpp"

#include <map>
#include <numeric>

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::simulator;

namespace {

settings small_engine() {
  settings values;
  values.block_size = 4;
  values.total_blocks = 64;
  values.max_model_len = 256;
  values.max_num_seqs = 8;
  values.max_num_batched_tokens = 32;
  return values;
}

std::vector<token_id> prompt_of(std::size_t count, token_id first = 0) {
  std::vector<token_id> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = 'a' + static_cast<token_id>((first + i) % 1000);
  return tokens;
}

sequence_request ask(sequence_id id, std::vector<token_id> prompt, std::uint32_t max_tokens) {
  auto source = generator::random(1, "m", prompt, 0);
  return {.id = id, .prompt = std::move(prompt), .max_tokens = max_tokens, .salt = {}, .source = std::move(source)};
}

struct run_result {
  std::map<sequence_id, std::vector<token_id>> tokens;
  std::map<sequence_id, finish_reason> finished;
  double milliseconds = 0;
  int steps = 0;
};

run_result run(step_model& model) {
  run_result all;
  while (const auto plan = model.begin_step()) {
    REQUIRE(++all.steps < 10'000);
    all.milliseconds += plan->milliseconds;
    for (const auto& output : model.end_step().tokens) {
      all.tokens[output.id].push_back(output.token);
      if (output.finish) all.finished[output.id] = *output.finish;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("step times follow the formulas") {
  const step_costs costs;
  CHECK(prefill_milliseconds(costs, 0) == 0);
  CHECK(prefill_milliseconds(costs, 512) == doctest::Approx(24.4).epsilon(0.002));
  CHECK(prefill_milliseconds(costs, 2048) == doctest::Approx(49.4).epsilon(0.002));
  CHECK(prefill_milliseconds(costs, 8192) == doctest::Approx(169.1).epsilon(0.002));
  CHECK(prefill_milliseconds(costs, 16384) == doctest::Approx(378.3).epsilon(0.002));
  CHECK(decode_milliseconds(costs, 0, 1000) == doctest::Approx(5.74));
  CHECK(decode_milliseconds(costs, 250, 1000) == doctest::Approx(17.63).epsilon(0.001));
  CHECK(decode_milliseconds(costs, 500, 1000) == doctest::Approx(26.31).epsilon(0.001));
  CHECK(decode_milliseconds(costs, 1000, 1000) == doctest::Approx(34.01));
  CHECK(decode_milliseconds(costs, 5000, 1000) == doctest::Approx(34.01));
  CHECK(decode_milliseconds({.decode_constant = 0, .decode_floor = 1.5}, 0, 1000) == doctest::Approx(1.5));
}

TEST_CASE("one request: prefill makes the first token, then a token a step") {
  auto values = small_engine();
  step_model model(values, 1);
  REQUIRE(model.add(ask(1, prompt_of(10), 3)) == errc::none);

  auto plan = model.begin_step();
  REQUIRE(plan);
  CHECK(plan->prefill_tokens == 10);
  CHECK(plan->decoding == 0);
  CHECK(plan->milliseconds == doctest::Approx(prefill_milliseconds(values.costs, 10)));
  CHECK(model.load().running == 1);
  auto output = model.end_step();
  REQUIRE(output.tokens.size() == 1);
  CHECK_FALSE(output.tokens[0].finish);

  plan = model.begin_step();
  REQUIRE(plan);
  CHECK(plan->prefill_tokens == 0);
  CHECK(plan->decoding == 1);
  CHECK(plan->milliseconds == doctest::Approx(decode_milliseconds(values.costs, 11, 256)));
  CHECK_FALSE(model.end_step().tokens[0].finish);
  REQUIRE(model.begin_step());
  output = model.end_step();
  CHECK(output.tokens[0].finish == finish_reason::length);
  CHECK_FALSE(model.begin_step());
  CHECK(model.load().running == 0);
  CHECK(model.load().kv_usage == 0);
}

TEST_CASE("the end token finishes an answer, but not before min_tokens and not when ignored") {
  step_model model(small_engine(), 1);
  const auto always_ends = [](sequence_id id) {
    auto request = ask(id, prompt_of(5), 9);
    request.source = generator::random(1, "m", request.prompt, 1.0);
    return request;
  };
  auto plain = always_ends(1);
  auto at_least_three = always_ends(2);
  at_least_three.min_tokens = 3;
  auto ignoring = always_ends(3);
  ignoring.ignore_eos = true;
  REQUIRE(model.add(std::move(plain)) == errc::none);
  REQUIRE(model.add(std::move(at_least_three)) == errc::none);
  REQUIRE(model.add(std::move(ignoring)) == errc::none);
  const auto all = run(model);
  CHECK(all.tokens.at(1) == std::vector{eos_token});
  CHECK(all.tokens.at(2).size() == 4);
  CHECK(all.tokens.at(2).back() == eos_token);
  CHECK(all.finished.at(2) == finish_reason::stop);
  CHECK(all.tokens.at(3).size() == 9);
  CHECK(all.finished.at(3) == finish_reason::length);
}

TEST_CASE("a long prompt is computed in chunks of the step's budget, while others decode") {
  step_model model(small_engine(), 1);
  REQUIRE(model.add(ask(1, prompt_of(4), 10)) == errc::none);
  REQUIRE(model.begin_step());
  CHECK(model.end_step().tokens.size() == 1);
  REQUIRE(model.add(ask(2, prompt_of(70, 500), 2)) == errc::none);
  std::vector<std::uint64_t> chunks;
  std::vector<std::size_t> outputs;
  for (int step = 0; step < 3; ++step) {
    const auto plan = model.begin_step();
    REQUIRE(plan);
    CHECK(plan->decoding == 1);
    chunks.push_back(plan->prefill_tokens);
    outputs.push_back(model.end_step().tokens.size());
  }
  CHECK(chunks == std::vector<std::uint64_t>{31, 31, 8});
  CHECK(outputs == std::vector<std::size_t>{1, 1, 2});
}

TEST_CASE("a repeated prompt is served from the cache up to the cap") {
  step_model model(small_engine(), 1);
  std::map<std::size_t, std::uint32_t> cached;
  REQUIRE(model.add(ask(1, prompt_of(16), 1)) == errc::none);
  run(model);
  sequence_id next = 2;
  for (std::size_t length : {8, 15, 16, 17, 20}) {
    REQUIRE(model.add(ask(next++, prompt_of(length), 1)) == errc::none);
    const auto plan = model.begin_step();
    REQUIRE(plan);
    const auto output = model.end_step();
    cached[length] = output.tokens.at(0).cached_tokens;
    CHECK(plan->prefill_tokens == length - cached[length]);
  }
  CHECK(cached == std::map<std::size_t, std::uint32_t>{{8, 4}, {15, 12}, {16, 12}, {17, 16}, {20, 16}});
  CHECK(model.load().prefix_queries == 16 + 8 + 15 + 16 + 17 + 20);
  CHECK(model.load().prefix_hits == 4 + 12 + 12 + 16 + 16);
}

TEST_CASE("answers are cached block by block as they are decoded") {
  step_model model(small_engine(), 1);
  const auto prompt = prompt_of(6);
  REQUIRE(model.add(ask(1, prompt, 7)) == errc::none);
  const auto answer = run(model).tokens.at(1);
  auto next_turn = prompt;
  next_turn.insert(next_turn.end(), answer.begin(), answer.end());
  next_turn.push_back('?');
  // 13 tokens had been known, the last one never computed: 12 are in full blocks.
  REQUIRE(model.add(ask(2, next_turn, 1)) == errc::none);
  REQUIRE(model.begin_step());
  CHECK(model.end_step().tokens.at(0).cached_tokens == 12);
}

TEST_CASE("hashes differ between processes and between salts, and are told with tokens, parent and salt") {
  const auto stored = [](step_model& model, sequence_id id, std::string salt) {
    auto request = ask(id, prompt_of(9), 1);
    request.salt = std::move(salt);
    REQUIRE(model.add(std::move(request)) == errc::none);
    REQUIRE(model.begin_step());
    const auto events = model.end_step().events;
    REQUIRE(events.size() == 1);
    return std::get<blocks_stored>(events[0]);
  };
  step_model one(small_engine(), 1);
  step_model other(small_engine(), 2);
  const auto plain = stored(one, 1, {});
  CHECK(plain.parent == std::nullopt);
  CHECK(plain.tokens == prompt_of(8));
  CHECK(plain.hashes.size() == 2);
  CHECK(plain.salt.empty());
  const auto salted = stored(one, 2, "secret");
  CHECK(salted.salt == "secret");
  CHECK(salted.hashes != plain.hashes);
  CHECK(stored(other, 1, {}).hashes != plain.hashes);

  // Twelve tokens more: the next event hangs on the last hash.
  REQUIRE(one.add(ask(3, prompt_of(20), 1)) == errc::none);
  REQUIRE(one.begin_step());
  const auto events = one.end_step().events;
  REQUIRE(events.size() == 1);
  const auto longer = std::get<blocks_stored>(events[0]);
  CHECK(longer.parent == plain.hashes[1]);
  CHECK(longer.tokens.size() == 12);
  CHECK(longer.tokens.front() == prompt_of(20)[8]);
}

TEST_CASE("answers of one prompt share its blocks within the same step") {
  auto values = small_engine();
  values.max_num_batched_tokens = 64;
  step_model model(values, 1);
  for (sequence_id id = 1; id <= 3; ++id) REQUIRE(model.add(ask(id, prompt_of(18), 1)) == errc::none);
  const auto plan = model.begin_step();
  REQUIRE(plan);
  CHECK(plan->prefill_tokens == 18 + 2 + 2);
  CHECK(model.load().kv_usage == doctest::Approx((5 + 1 + 1) / 64.0));
}

TEST_CASE("a request that finds no memory waits; one that could never fit is refused") {
  auto values = small_engine();
  values.total_blocks = 8;  // 32 tokens
  values.max_num_seqs = 2;
  values.max_waiting = 1;
  step_model model(values, 1);
  CHECK(model.add(ask(9, prompt_of(30), 3)) == errc::invalid_request);
  CHECK(model.add(ask(9, {}, 3)) == errc::invalid_request);
  REQUIRE(model.add(ask(1, prompt_of(24), 4)) == errc::none);
  REQUIRE(model.begin_step());
  model.end_step();
  REQUIRE(model.add(ask(2, prompt_of(24, 500), 4)) == errc::none);
  CHECK(model.add(ask(1, prompt_of(4), 4)) == errc::invalid_request);  // the id is taken
  REQUIRE(model.begin_step());
  CHECK(model.load().running == 1);
  CHECK(model.load().waiting == 1);
  REQUIRE(model.add(ask(3, prompt_of(4), 1)) == errc::none);
  CHECK(model.add(ask(4, prompt_of(4), 1)) == errc::overloaded);
  model.end_step();
  const auto all = run(model);
  CHECK(all.finished.size() == 3);
  CHECK(all.tokens.at(2).size() == 4);
}

TEST_CASE("when blocks run out the youngest gives up its own, and its answer is not changed by it") {
  auto values = small_engine();
  values.total_blocks = 10;  // 40 tokens
  step_model crowded(values, 1);
  REQUIRE(crowded.add(ask(1, prompt_of(14), 16)) == errc::none);
  REQUIRE(crowded.add(ask(2, prompt_of(14, 500), 16)) == errc::none);
  const auto disturbed = run(crowded);
  CHECK(crowded.load().preemptions > 0);
  CHECK(crowded.load().kv_usage == 0);

  step_model roomy(small_engine(), 1);
  REQUIRE(roomy.add(ask(1, prompt_of(14), 16)) == errc::none);
  REQUIRE(roomy.add(ask(2, prompt_of(14, 500), 16)) == errc::none);
  const auto calm = run(roomy);
  CHECK(roomy.load().preemptions == 0);
  CHECK(disturbed.tokens == calm.tokens);
  CHECK(disturbed.steps > calm.steps);
}

TEST_CASE("an abort frees blocks at once, running, waiting or in the middle of a step") {
  auto values = small_engine();
  values.max_num_seqs = 1;
  step_model model(values, 1);
  REQUIRE(model.add(ask(1, prompt_of(20), 50)) == errc::none);
  REQUIRE(model.add(ask(2, prompt_of(20, 500), 50)) == errc::none);
  REQUIRE(model.begin_step());
  CHECK(model.load().kv_usage > 0);
  model.abort(1);
  CHECK(model.load().kv_usage == 0);
  CHECK(model.load().running == 0);
  CHECK(model.end_step().tokens.empty());
  model.abort(2);
  model.abort(77);
  CHECK(model.load().waiting == 0);
  CHECK_FALSE(model.begin_step());
}

TEST_CASE("a reset forgets the cache, and what runs starts over with the same answer") {
  step_model model(small_engine(), 1);
  REQUIRE(model.add(ask(1, prompt_of(20), 6)) == errc::none);
  std::vector<token_id> answer;
  REQUIRE(model.begin_step());
  answer.push_back(model.end_step().tokens.at(0).token);
  REQUIRE(model.begin_step());
  model.reset_prefix_cache();  // in the middle of a step
  const auto output = model.end_step();
  CHECK(output.tokens.empty());
  REQUIRE(output.events.size() == 1);
  CHECK(std::holds_alternative<all_blocks_cleared>(output.events[0]));
  const auto rest = run(model).tokens.at(1);
  answer.insert(answer.end(), rest.begin(), rest.end());

  step_model undisturbed(small_engine(), 1);
  REQUIRE(undisturbed.add(ask(1, prompt_of(20), 6)) == errc::none);
  CHECK(answer == run(undisturbed).tokens.at(1));
}

TEST_CASE("events add up to what the cache holds") {
  auto values = small_engine();
  values.total_blocks = 16;
  step_model model(values, 1);
  std::map<engine_hash, int> held;
  sequence_id next = 1;
  for (int round = 0; round < 40; ++round) {
    const auto first = static_cast<token_id>(round * 37 % 5 * 100);
    REQUIRE(model.add(ask(next++, prompt_of(8 + round % 13, first), 1 + round % 7)) == errc::none);
    while (model.begin_step()) {
      for (const auto& event : model.end_step().events) {
        if (const auto* stored = std::get_if<blocks_stored>(&event)) {
          CHECK(stored->tokens.size() == stored->hashes.size() * values.block_size);
          if (stored->parent) CHECK(held[*stored->parent] > 0);
          for (auto hash : stored->hashes) ++held[hash];
        } else if (const auto* removed = std::get_if<block_removed>(&event)) {
          CHECK(--held[removed->hash] >= 0);
        }
      }
    }
  }
  const auto total =
      std::accumulate(held.begin(), held.end(), 0, [](int sum, const auto& entry) { return sum + entry.second; });
  CHECK(total == static_cast<int>(model.cache().cached()));
  CHECK(total > 0);
}
