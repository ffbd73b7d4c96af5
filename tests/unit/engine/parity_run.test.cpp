#include "actors/engine/parity_run.hpp"

#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace infernex;
using namespace infernex::engine;
using namespace std::chrono_literals;

/// An engine's ledger, and the run that follows it; what the run asks is kept.
struct fixture {
  explicit fixture(bool enabled = true, fb::EngineRole role = fb::EngineRole::Aggregated, std::string url = "http://e",
                   std::string kv_events = "tcp://127.0.0.1:5557", std::uint64_t seed = 7)
      : settings{engine_of(role, std::move(url), std::move(kv_events))},
        book(settings),
        run(enabled, seed,
            [this](auto number, http_call question) { asked.emplace_back(number, std::move(question)); }) {}

  static ledger_settings engine_of(fb::EngineRole role, std::string url, std::string kv_events) {
    ledger_settings made;
    made.engine.instance = "e0";
    made.engine.model = "m";
    made.engine.url = std::move(url);
    made.engine.kv_events = std::move(kv_events);
    made.engine.role = role;
    return made;
  }

  void probed(unsigned status, std::uint64_t wall_ns) {
    probe_result probe;
    probe.health = {status == 0 ? probe_outcome::refused : probe_outcome::answered, status, wall_ns};
    book.on_probe(probe);
  }
  void streamed(fb::KvHealth health) {
    event_batch group;
    group.generation = book.generation();
    group.health = health;
    book.on_events(group);
  }
  void ready(std::uint64_t wall_ns) {
    probed(200, wall_ns);
    streamed(fb::KvHealth::Live);
  }
  parity_run::ended follow() { return run.follow(book, settings.engine, now); }
  /// The newest question is answered.
  parity_run::ended answered(unsigned status, const std::string& body = {}) {
    return run.on_answer(asked.back().first, status, body, now);
  }

  ledger_settings settings;
  ledger book;
  std::vector<std::pair<std::uint64_t, http_call>> asked;
  parity_run run;
  parity_run::time_point now{std::chrono::hours(1)};
};

TEST_CASE("an engine is probed once in each of its lives, when it is ready and its events are followed") {
  fixture f;
  f.probed(503, 1);
  CHECK_FALSE(f.follow().has_value());
  f.probed(200, 1'000);
  CHECK_FALSE(f.follow().has_value());
  CHECK(f.asked.empty());  // its events are still replayed
  f.streamed(fb::KvHealth::Live);
  CHECK_FALSE(f.follow().has_value());
  REQUIRE(f.asked.size() == 1);
  CHECK(f.asked[0].second.path == "/v1/completions/render");
  f.follow();
  CHECK(f.asked.size() == 1);  // one question at a time

  const auto verdict = f.answered(0, "connection refused");
  REQUIRE(verdict.has_value());
  CHECK(verdict->fault == parity_fault::not_probed);
  CHECK(verdict->problem.find("connection refused") != std::string::npos);
  CHECK_FALSE(f.answered(0, "again").has_value());
  CHECK_FALSE(f.follow().has_value());
  CHECK(f.asked.size() == 1);

  f.probed(0, 2'000);
  f.probed(0, 2'000);
  f.follow();
  f.ready(3'000);
  f.follow();
  REQUIRE(f.asked.size() == 2);
  CHECK(f.asked[1].first != f.asked[0].first);
  CHECK(f.asked[1].second.body != f.asked[0].second.body);
}

TEST_CASE("agents of the same life of an engine do not send it the same prompt") {
  fixture one;
  fixture other(true, fb::EngineRole::Aggregated, "http://e", "tcp://127.0.0.1:5557", 8'000);
  for (auto* each : {&one, &other}) {
    each->ready(1'000);
    each->follow();
    REQUIRE(each->asked.size() == 1);
  }
  CHECK(one.asked[0].second.body != other.asked[0].second.body);
}

TEST_CASE("a stream that lacks something is probed too, and an engine without events") {
  fixture partial;
  partial.probed(200, 1);
  partial.streamed(fb::KvHealth::Partial);
  partial.follow();
  CHECK(partial.asked.size() == 1);

  fixture silent(true, fb::EngineRole::Aggregated, "http://e", "");
  silent.probed(200, 1);
  silent.follow();
  CHECK(silent.asked.size() == 1);
}

TEST_CASE("no probe of decode engines, of engines without a URL, or where it is turned off") {
  fixture decode(true, fb::EngineRole::Decode);
  fixture unreachable(true, fb::EngineRole::Aggregated, "");
  fixture off(false);
  for (auto* each : {&decode, &unreachable, &off}) {
    each->ready(1);
    CHECK_FALSE(each->follow().has_value());
    CHECK(each->asked.empty());
  }
}

TEST_CASE("an engine that goes ends its probe; answers and events that come later mean nothing") {
  fixture f;
  f.ready(1'000);
  f.follow();
  REQUIRE(f.asked.size() == 1);
  const auto former = f.asked[0].first;
  f.probed(0, 2'000);
  f.probed(0, 2'000);
  CHECK_FALSE(f.follow().has_value());
  CHECK_FALSE(f.run.on_answer(former, 0, "late", f.now).has_value());
  CHECK_FALSE(f.run.on_events({}, f.now).has_value());
  f.ready(3'000);
  f.follow();
  REQUIRE(f.asked.size() == 2);
  CHECK_FALSE(f.run.on_answer(former, 0, "out of date", f.now).has_value());
  CHECK(f.asked.size() == 2);
  CHECK(f.answered(0, "gone").has_value());
}

TEST_CASE("questions follow each other, and a wait without events ends in time") {
  fixture f;
  f.ready(1'000);
  f.follow();
  for (int i = 0; i < 4; ++i) CHECK_FALSE(f.answered(404).has_value());  // render and /tokenize, text and chat
  REQUIRE(f.asked.size() == 5);
  CHECK(f.asked.back().second.path == "/v1/completions");
  CHECK_FALSE(f.answered(200, R"({"usage":{"prompt_tokens":400}})").has_value());
  f.now += 4s;
  CHECK_FALSE(f.follow().has_value());
  f.now += 1s;
  const auto verdict = f.follow();
  REQUIRE(verdict.has_value());
  CHECK(verdict->fault == parity_fault::no_events);
  CHECK_FALSE(f.follow().has_value());
  CHECK(f.asked.size() == 5);
}

TEST_CASE("events of the prompt let the probe go on to the chat") {
  fixture f;
  f.ready(1'000);
  f.follow();
  for (int i = 0; i < 4; ++i) f.answered(404);
  f.answered(200, R"({"usage":{"prompt_tokens":2}})");
  REQUIRE(f.asked.size() == 5);
  stored_blocks blocks;
  blocks.hashes = {1};
  blocks.block_size = 2;
  blocks.tokens = {1, 2};
  event_batch group;
  group.batches.emplace_back().events = {blocks};
  CHECK_FALSE(f.run.on_events(group, f.now).has_value());
  REQUIRE(f.asked.size() == 6);
  CHECK(f.asked.back().second.path == "/v1/chat/completions");
}

}  // namespace
