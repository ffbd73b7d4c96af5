#include "actors/simulator/batch_scheduler.hpp"

#include <map>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include "actors/simulator/step_model.hpp"

using namespace infernex;
using namespace infernex::simulator;

namespace {

settings small_engine() {
  settings values;
  values.block_size = 4;
  values.total_blocks = 48;
  values.max_model_len = 160;
  values.max_num_seqs = 4;
  values.max_num_batched_tokens = 32;
  return values;
}

struct arrival {
  int step = 0;
  std::vector<token_id> prompt;
  std::uint32_t max_tokens = 1;
};

/// Prompts with common starts, more than the memory holds at once.
std::vector<arrival> arrivals(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  std::vector<arrival> all;
  int step = 0;
  for (std::size_t i = 0; i < count; ++i) {
    step += static_cast<int>(random() % 9);
    std::vector<token_id> prompt(1 + random() % 90);
    const auto family = static_cast<token_id>(random() % 4 * 1'000);
    std::iota(prompt.begin(), prompt.end(), family);
    if (random() % 2 == 0) prompt.back() = 100'000 + static_cast<token_id>(i);
    all.push_back({step, std::move(prompt), 1 + static_cast<std::uint32_t>(random() % 60)});
  }
  return all;
}

/// The same prefixes get the same names, as the token engine's hashes do.
struct naming {
  std::map<std::vector<token_id>, block_name> of_prefix;
  std::vector<block_name> chain(const std::vector<token_id>& prompt, std::uint32_t block) {
    std::vector<block_name> names;
    for (std::size_t end = block; end <= prompt.size(); end += block) {
      const std::vector<token_id> prefix(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(end));
      names.push_back(of_prefix.emplace(prefix, of_prefix.size() + 1).first->second);
    }
    return names;
  }
};

struct seen_step {
  double milliseconds = 0;
  std::uint64_t prefill_tokens = 0;
  std::vector<std::pair<sequence_id, std::uint32_t>> tokens;  // with those from the cache
  double kv_usage = 0;
  std::uint32_t waiting = 0;
  friend bool operator==(const seen_step&, const seen_step&) = default;
};

constexpr int steps = 3'000;

std::vector<seen_step> run_tokens(const settings& values, const std::vector<arrival>& all, std::uint64_t& preemptions) {
  step_model model(values, 1);
  std::vector<seen_step> seen;
  std::size_t next = 0;
  for (int step = 0; step < steps; ++step) {
    for (; next < all.size() && all[next].step == step; ++next) {
      auto source = generator::random(next, "m", all[next].prompt, 0);
      REQUIRE(model.add({.id = next,
                         .prompt = all[next].prompt,
                         .max_tokens = all[next].max_tokens,
                         .salt = {},
                         .source = std::move(source)}) == errc::none);
    }
    const auto plan = model.begin_step();
    if (!plan) continue;
    const auto load = model.load();
    auto& one = seen.emplace_back(seen_step{plan->milliseconds, plan->prefill_tokens, {}, load.kv_usage, load.waiting});
    for (const auto& made : model.end_step().tokens) one.tokens.emplace_back(made.id, made.cached_tokens);
  }
  preemptions = model.load().preemptions;
  return seen;
}

std::vector<seen_step> run_lengths(const settings& values, const std::vector<arrival>& all) {
  batch_scheduler model(values);
  naming names;
  std::vector<seen_step> seen;
  std::size_t next = 0;
  for (int step = 0; step < steps; ++step) {
    for (; next < all.size() && all[next].step == step; ++next) {
      const auto chain = names.chain(all[next].prompt, values.block_size);
      sequence_slot slot = 0;
      REQUIRE(model.add({.id = next,
                         .prompt_tokens = static_cast<std::uint32_t>(all[next].prompt.size()),
                         .max_tokens = all[next].max_tokens,
                         .chain = chain,
                         .naming = next + 1},
                        slot) == errc::none);
    }
    const auto plan = model.begin_step();
    if (!plan) continue;
    const auto load = model.load();
    auto& one = seen.emplace_back(seen_step{plan->milliseconds, plan->prefill_tokens, {}, load.kv_usage, load.waiting});
    for (const auto& made : model.end_step()) {
      one.tokens.emplace_back(made.id, made.cached_tokens);
      if (made.at_limit) model.finish(made.slot);
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("an engine fed with lengths and names does what one fed with tokens does, step by step") {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    const auto all = arrivals(seed, 150);
    std::uint64_t preemptions = 0;
    const auto by_tokens = run_tokens(small_engine(), all, preemptions);
    CHECK(preemptions > 0);
    CHECK(by_tokens.size() > 500);
    CHECK(run_lengths(small_engine(), all) == by_tokens);
  }
}

TEST_CASE("quiet steps at once are the same steps one by one") {
  auto values = small_engine();
  values.block_size = 16;
  values.total_blocks = 24;
  values.max_model_len = 300;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    const auto all = arrivals(seed, 60);
    batch_scheduler single(values);
    batch_scheduler skipping(values);
    std::uint32_t skipped = 0;
    const auto step = [&](batch_scheduler& model) {
      const auto plan = model.begin_step();
      if (!plan) return -1.0;
      for (const auto& made : model.end_step())
        if (made.at_limit) model.finish(made.slot);
      return plan->milliseconds;
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
      sequence_slot slot = 0;
      for (auto* model : {&single, &skipping})
        REQUIRE(model->add({.id = i,
                            .prompt_tokens = static_cast<std::uint32_t>(all[i].prompt.size()),
                            .max_tokens = all[i].max_tokens,
                            .chain = {},
                            .naming = i + 1},
                           slot) == errc::none);
      // As many steps as until the next arrival, some of them at once.
      for (auto left = static_cast<std::uint32_t>(i + 1 == all.size() ? 2'000 : all[i + 1].step - all[i].step);
           left > 0;) {
        const auto quiet = skipping.quiet();
        const auto together = std::min(quiet.steps, left);
        skipping.advance(together);
        for (std::uint32_t s = 0; s < together; ++s) REQUIRE(step(single) == skipping.milliseconds(quiet, s));
        skipped += together;
        left -= together;
        if (left == 0) break;
        REQUIRE(step(single) == step(skipping));
        --left;
      }
      CHECK(single.load().kv_usage == skipping.load().kv_usage);
      CHECK(single.load().running == skipping.load().running);
      CHECK(single.load().preemptions == skipping.load().preemptions);
    }
    CHECK(skipped > 100);
    CHECK(single.load().running == 0);
    CHECK(std::equal(single.cache().changes().begin(), single.cache().changes().end(),
                     skipping.cache().changes().begin(), skipping.cache().changes().end(),
                     [](const cache_change& a, const cache_change& b) {
                       return a.what == b.what && a.name == b.name && a.sole == b.sole;
                     }));
  }
}

TEST_CASE("a prompt whose KV came with it decodes at once, and holds and names its blocks") {
  auto values = small_engine();
  batch_scheduler model(values);
  const std::vector<block_name> chain{11, 12, 13, 14, 15};
  sequence_slot slot = 0;
  REQUIRE(model.add({.id = 1, .prompt_tokens = 20, .max_tokens = 2, .chain = chain, .kv_present = true}, slot) ==
          errc::none);
  const auto plan = model.begin_step();
  REQUIRE(plan);
  CHECK(plan->prefill_tokens == 0);
  CHECK(plan->decoding == 1);
  CHECK(plan->milliseconds == doctest::Approx(decode_milliseconds(values.costs, 20, 48 * 4)));
  CHECK(model.load().kv_usage == doctest::Approx(5 / 48.0));
  const auto made = model.end_step();
  REQUIRE(made.size() == 1);
  CHECK(made[0].answered == 1);
  CHECK(model.cache().matched(chain) == 5);
}

TEST_CASE("blocks of answers have names that no other sequence has, and the same again after a move") {
  auto values = small_engine();
  batch_scheduler model(values);
  const auto answer = [&](sequence_shape shape) {
    model.forget_changes();
    sequence_slot slot = 0;
    REQUIRE(model.add(shape, slot) == errc::none);
    while (model.begin_step())
      for (const auto& made : model.end_step())
        if (made.at_limit) model.finish(made.slot);
    std::vector<block_name> stored;
    for (const auto& change : model.cache().changes())
      if (change.what == cache_change::kind::stored) stored.push_back(change.name);
    return stored;
  };
  const std::vector<block_name> chain{11};
  const auto first = answer({.id = 1, .prompt_tokens = 6, .max_tokens = 11, .chain = chain, .naming = 77});
  REQUIRE(first.size() == 4);
  CHECK(first[0] == 11);
  const auto other = answer({.id = 2, .prompt_tokens = 6, .max_tokens = 11, .chain = chain, .naming = 78});
  REQUIRE(other.size() == 3);  // its first block was there
  for (const auto name : other) CHECK(std::find(first.begin(), first.end(), name) == first.end());
  // The same with ten of its tokens as part of the prompt: twelve of its sixteen tokens are there.
  REQUIRE(answer({.id = 3, .prompt_tokens = 16, .max_tokens = 1, .chain = chain, .naming = 77}).size() == 1);
}
