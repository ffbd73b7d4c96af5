#include "actors/engine/parity.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include <boost/json.hpp>
#include <doctest/doctest.h>

namespace {

using namespace infernex::engine;
using namespace std::chrono_literals;
using fault = parity_fault;
using tokens = std::vector<std::uint32_t>;

/// An engine that tokenizes a byte a token, and answers as a test wants it to.
struct fake_engine {
  std::uint32_t block_size = 16;
  bool renders = true;
  bool tokenizes = true;
  bool publishes = true;
  bool says_cached = true;
  bool caches = true;
  /// What the engine does to a prompt's tokens before it computes them.
  std::function<void(tokens&)> changed = [](tokens&) {};
  std::function<void(tokens&)> templated = [](tokens& prompt) { prompt.insert(prompt.begin(), 40, 1000); };
  std::size_t sends = 0;

  tokens tokens_of(const boost::json::object& body) const {
    const bool chat = body.contains("messages");
    const std::string text(chat ? body.at("messages").at(0).at("content").as_string() : body.at("prompt").as_string());
    tokens prompt(text.begin(), text.end());
    if (chat) templated(prompt);
    return prompt;
  }

  std::pair<unsigned, std::string> answer(const http_call& call, parity_probe& probe, parity_probe::time_point now) {
    const auto body = boost::json::parse(call.body).as_object();
    CHECK(body.at("model") == "m");
    auto prompt = tokens_of(body);
    if (call.path.ends_with("/render"))
      return renders ? std::pair{200U, ids("token_ids", prompt)} : std::pair{404U, std::string()};
    if (call.path == "/tokenize")
      return tokenizes ? std::pair{200U, ids("tokens", prompt)} : std::pair{404U, std::string()};
    CHECK(body.at("max_tokens") == 1);
    changed(prompt);
    const bool again = ++sends == 3;
    if (publishes && !again) publish(prompt, probe, now);
    boost::json::object usage{{"prompt_tokens", prompt.size()}};
    if (says_cached) {
      const auto cached = again && caches ? (prompt.size() - 1) / block_size * block_size : 0;
      usage["prompt_tokens_details"] = boost::json::object{{"cached_tokens", cached}};
    }
    return {200, boost::json::serialize(boost::json::object{{"usage", usage}})};
  }

  /// In two events, as an engine does that computes a prompt in chunks.
  void publish(const tokens& prompt, parity_probe& probe, parity_probe::time_point now) {
    const auto full = prompt.size() / block_size;
    const auto half = full / 2;
    std::optional<std::uint64_t> parent;
    for (const auto [from, to] : {std::pair{std::size_t{0}, half}, std::pair{half, full}}) {
      stored_blocks blocks;
      blocks.parent = parent;
      blocks.block_size = block_size;
      for (auto i = from; i < to; ++i) blocks.hashes.push_back(++hashes_);
      blocks.tokens.assign(prompt.begin() + static_cast<std::ptrdiff_t>(from * block_size),
                           prompt.begin() + static_cast<std::ptrdiff_t>(to * block_size));
      parent = hashes_;
      probe.on_stored(blocks, now);
    }
  }

  static std::string ids(const char* field, const tokens& prompt) {
    return boost::json::serialize(boost::json::object{{field, boost::json::array(prompt.begin(), prompt.end())}});
  }

 private:
  std::uint64_t hashes_ = 0;
};

parity_settings settings_for_m() {
  parity_settings settings;
  settings.model = "m";
  settings.announced_block_size = 16;
  return settings;
}

/// Lets the probe run to its end, in virtual time.
parity_verdict verdict_on(fake_engine& engine, const parity_settings& settings = settings_for_m()) {
  parity_probe::time_point now{};
  parity_probe probe(settings, 42, now);
  for (int steps = 0; !probe.verdict(); ++steps) {
    REQUIRE(steps < 20);
    if (const auto call = probe.request()) {
      const auto [status, body] = engine.answer(*call, probe, now);
      probe.on_answer(status, body, now);
    } else {
      REQUIRE(probe.deadline() > now);
      now = probe.deadline();
      probe.on_tick(now);
    }
  }
  CHECK_FALSE(probe.request().has_value());
  CHECK(probe.verdict()->problem.find('\n') == std::string::npos);
  CHECK(probe.verdict()->problem.empty() == (probe.verdict()->fault == fault::none));
  return *probe.verdict();
}

TEST_CASE("an engine that is as believed passes, by render or by tokenize") {
  fake_engine engine;
  CHECK(verdict_on(engine).fault == fault::none);
  CHECK(engine.sends == 3);
  fake_engine older;
  older.renders = false;
  CHECK(verdict_on(older).fault == fault::none);
  for (std::size_t i = 0; i < static_cast<std::size_t>(fault::count_); ++i)
    CHECK(name(static_cast<fault>(i)) != "unknown");
}

TEST_CASE("other blocks than the metrics say are named with both sizes") {
  fake_engine engine;
  auto settings = settings_for_m();
  settings.announced_block_size = 128;
  const auto wrong = verdict_on(engine, settings);
  CHECK(wrong.fault == fault::wrong_block_size);
  CHECK(wrong.problem == "parity: KV events have blocks of 16 tokens, the engine's metrics say 128");
  CHECK(engine.sends == 1);
  settings.announced_block_size.reset();
  fake_engine unknown;
  CHECK(verdict_on(unknown, settings).fault == fault::none);
}

TEST_CASE("another tokenizer: the first token that differs is named") {
  fake_engine engine;
  engine.changed = [](tokens& prompt) { prompt[20] = 7; };
  const auto verdict = verdict_on(engine);
  CHECK(verdict.fault == fault::tokenizer_differs);
  CHECK(verdict.problem.find("other prompt tokens than its /v1/completions/render says") != std::string::npos);
  CHECK(verdict.problem.find("first at position 20: 7, not ") != std::string::npos);

  fake_engine longer;  // a token before all others, as a tokenizer that adds one
  longer.changed = [](tokens& prompt) { prompt.insert(prompt.begin(), 9); };
  const auto other = verdict_on(longer);
  CHECK(other.fault == fault::tokenizer_differs);
  CHECK(other.problem.find("first at position 0: 9, not 80") != std::string::npos);

  fake_engine tail;  // within the last block, which no event shows: the count tells
  tail.changed = [](tokens& prompt) {
    while (prompt.size() % 16 != 5) prompt.push_back(3);
    prompt.push_back(3);
  };
  CHECK(verdict_on(tail).fault == fault::tokenizer_differs);
}

TEST_CASE("another chat template, where texts agree") {
  fake_engine engine;
  engine.changed = [&engine](tokens& prompt) {
    if (engine.sends == 1) prompt[0] = 1001;  // the second prompt is the chat
  };
  const auto verdict = verdict_on(engine);
  CHECK(verdict.fault == fault::template_differs);
  CHECK(verdict.problem.find("first at position 0: 1001, not 1000") != std::string::npos);
}

TEST_CASE("no events within the time") {
  fake_engine engine;
  engine.publishes = false;
  const auto verdict = verdict_on(engine);
  CHECK(verdict.fault == fault::no_events);
  CHECK(verdict.problem == "parity: no KV events of a prompt within 5000 ms");

  auto settings = settings_for_m();
  settings.announced_block_size = 65'536;
  CHECK(verdict_on(engine, settings).fault == fault::not_probed);  // no block was filled
  settings = settings_for_m();

  settings.expects_events = false;
  fake_engine without;
  without.publishes = false;
  CHECK(verdict_on(without, settings).fault == fault::none);
  fake_engine miscounting;
  miscounting.publishes = false;
  miscounting.changed = [](tokens& prompt) { prompt.push_back(1); };
  CHECK(verdict_on(miscounting, settings).fault == fault::tokenizer_differs);
}

TEST_CASE("cached tokens that are not said, or fewer than the cache should give") {
  fake_engine silent;
  silent.says_cached = false;
  CHECK(verdict_on(silent).fault == fault::cached_tokens_missing);
  auto settings = settings_for_m();
  settings.expects_cached_tokens = false;
  fake_engine unasked;
  unasked.says_cached = false;
  CHECK(verdict_on(unasked, settings).fault == fault::none);

  fake_engine cold;
  cold.caches = false;
  const auto verdict = verdict_on(cold);
  CHECK(verdict.fault == fault::cached_tokens_fewer);
  CHECK(verdict.problem.find("a prompt sent again had 0 cached tokens, not ") != std::string::npos);
}

TEST_CASE("who tells no tokens is followed as far as that goes") {
  fake_engine engine;
  engine.renders = engine.tokenizes = false;
  const auto verdict = verdict_on(engine);
  CHECK(verdict.fault == fault::not_probed);
  CHECK(verdict.problem == "parity: neither render nor /tokenize tells a prompt's tokens");
  CHECK(engine.sends == 3);
}

TEST_CASE("a question without an answer, or with a refusal, ends the probe with nothing known") {
  const parity_probe::time_point start{};
  parity_probe silent(settings_for_m(), 1, start);
  silent.on_tick(start + 29s);
  CHECK_FALSE(silent.verdict().has_value());
  silent.on_tick(start + 30s);
  REQUIRE(silent.verdict().has_value());
  CHECK(silent.verdict()->fault == fault::not_probed);
  CHECK(silent.verdict()->problem == "parity: no answer to POST /v1/completions/render within 30000 ms");
  silent.on_tick(start + 60s);
  silent.on_answer(200, "{}", start + 60s);
  silent.on_failure("late", start + 60s);
  CHECK(silent.deadline() == parity_probe::time_point::max());

  parity_probe refused(settings_for_m(), 1, start);
  refused.on_failure("connection refused", start);
  REQUIRE(refused.verdict().has_value());
  CHECK(refused.verdict()->problem == "parity: no answer to POST /v1/completions/render: connection refused");

  parity_probe asleep(settings_for_m(), 1, start);
  for (int i = 0; i < 4; ++i) asleep.on_answer(404, "", start);
  REQUIRE(asleep.request().has_value());
  asleep.on_answer(503, "", start);
  REQUIRE(asleep.verdict().has_value());
  CHECK(asleep.verdict()->problem == "parity: POST /v1/completions was answered with status 503");
}

TEST_CASE("prompts are a few blocks long, within the context, and never the same") {
  const parity_probe::time_point now{};
  const auto text = [&](const parity_settings& settings, std::uint64_t nonce) {
    const auto call = parity_probe(settings, nonce, now).request();
    REQUIRE(call.has_value());
    return std::string(boost::json::parse(call->body).at("prompt").as_string());
  };
  const auto words = [](const std::string& prompt) { return std::ranges::count(prompt, ' '); };
  auto settings = settings_for_m();
  settings.announced_block_size = 128;
  CHECK(words(text(settings, 1)) >= 3 * 128);
  CHECK(text(settings, 1).substr(0, 8) != text(settings, 2).substr(0, 8));
  settings.announced_block_size = 65'536;
  CHECK(words(text(settings, 1)) <= 4'100);
  settings.announced_block_size = 128;
  settings.max_model_len = 200;
  CHECK(words(text(settings, 1)) <= 52);
}

stored_blocks blocks_of(std::vector<std::uint64_t> hashes, std::optional<std::uint64_t> parent, tokens ids) {
  stored_blocks blocks;
  blocks.block_size = static_cast<std::uint32_t>(ids.size() / hashes.size());
  blocks.hashes = std::move(hashes);
  blocks.parent = parent;
  blocks.tokens = std::move(ids);
  return blocks;
}

TEST_CASE("chains: a prompt is found among others, also behind a beginning that was cached before") {
  const tokens prompt{1, 2, 3, 4, 5, 6, 7};
  parity_chains chains;
  chains.add(blocks_of({50}, std::nullopt, {9, 9}));
  CHECK_FALSE(chains.holds(prompt));
  chains.add(blocks_of({1}, std::nullopt, {1, 2}));
  chains.add(blocks_of({51}, 50, {8, 8}));
  CHECK_FALSE(chains.holds(prompt));  // its last blocks are still to come
  chains.add(blocks_of({2, 3}, 1, {3, 4, 5, 6}));
  CHECK(chains.holds(prompt));
  CHECK(chains.block_size() == 2);

  parity_chains cached_start;
  cached_start.add(blocks_of({2, 3}, 77, {3, 4, 5, 6}));
  CHECK(cached_start.holds(prompt));
  cached_start.clear();
  CHECK_FALSE(cached_start.holds(prompt));

  parity_chains tail;  // the right end, but it claims to begin the prompt
  tail.add(blocks_of({2, 3}, std::nullopt, {3, 4, 5, 6}));
  CHECK_FALSE(tail.holds(prompt));

  parity_chains sparse;
  auto window = blocks_of({1, 2, 3}, std::nullopt, {1, 2, 3, 4, 5, 6});
  window.attention_kind = "sliding_window";
  sparse.add(window);
  CHECK(sparse.empty());
}

TEST_CASE("chains: the nearest is as long as the prompt, and agrees longest") {
  const tokens prompt{1, 2, 3, 4, 5, 6, 7};
  parity_chains chains;
  CHECK_FALSE(chains.nearest(prompt, 7).has_value());
  chains.add(blocks_of({1, 2}, std::nullopt, {1, 2, 3, 4}));  // another's, shorter
  CHECK_FALSE(chains.nearest(prompt, 7).has_value());
  chains.add(blocks_of({3, 4, 5}, std::nullopt, {9, 9, 9, 9, 9, 9}));
  chains.add(blocks_of({6, 7, 8}, std::nullopt, {1, 2, 3, 9, 5, 6}));
  const auto found = chains.nearest(prompt, 7);
  REQUIRE(found.has_value());
  CHECK(found->position == 3);
  CHECK(found->engine_token == 9U);
  parity_chains behind;
  behind.add(blocks_of({7, 8}, 99, {3, 9, 5, 6}));
  REQUIRE(behind.nearest(prompt, 7).has_value());
  CHECK(behind.nearest(prompt, 7)->position == 3);
}

TEST_CASE("chains are bounded") {
  parity_chains chains;
  for (std::uint64_t i = 0; i < 10'000; ++i) chains.add(blocks_of({i}, std::nullopt, {1, 2}));
  chains.add(blocks_of({20'000, 20'001, 20'002}, std::nullopt, {1, 2, 3, 4, 5, 6}));
  CHECK(chains.holds(tokens{1, 2, 3, 4, 5, 6, 7}));
}

}  // namespace
