// A router over a real nats-server; agents and indexers exist on the bus only.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>

#include <doctest/doctest.h>

#include "actors/router/actor.hpp"
#include "actors/router/picker_config.hpp"
#include "tests/component/indexer/fake_agent.hpp"
#include "tests/support/nats_server.hpp"
#include "tests/support/wait.hpp"

namespace infernex {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::fake_agent;

std::unique_ptr<bus> connect(const test::nats_server& server, metrics_registry& metrics) {
  bus_settings how;
  how.url = server.url();
  how.reconnect_wait = 50ms;
  auto made = bus::connect(how, metrics);
  REQUIRE(made);
  return *std::move(made);
}

const std::vector<std::uint64_t> prompt_keys{11, 12, 13, 14};

struct setup {
  test::nats_server server;
  metrics_registry metrics;
  std::unique_ptr<bus> outside = connect(server, metrics);
  std::unique_ptr<bus> inside = connect(server, metrics);
  actor_config config;
  caf::actor_system system{config};
  runtime process{system, *inside, metrics, "test-1", 1};
  std::unique_ptr<role> router;
  subscription indexer;
  fake_agent first{*outside, "m", "e0"};
  fake_agent second{*outside, "m", "e1"};
  unsigned asked = 0;

  explicit setup(router::settings how = {}) {
    auto made = router::start(process, how);
    REQUIRE(made);
    router = *std::move(made);
  }
  ~setup() {
    router->stop(2s);
    router.reset();
    indexer = {};
    outside->close(1s);
    inside->close(1s);
  }
  /// Answers every chain alike: `instance` holds its first `blocks`.
  void start_indexer(const std::string& instance, std::uint32_t blocks) {
    auto made = outside->subscribe(outside->names().any_kv_match(), {lane::rpc, "indexer", 64},
                                   [this, instance, blocks](inbound<fb::KvMatchQuery>&& query) {
                                     fb::KvMatchReplyT reply;
                                     reply.origin = std::make_unique<fb::OriginT>();
                                     reply.coverage.push_back(std::make_unique<fb::KvCoverageT>());
                                     for (std::size_t i = 0; i < query.message->chains()->size(); ++i) {
                                       auto& match = *reply.matches.emplace_back(std::make_unique<fb::KvMatchT>());
                                       auto& one = *match.overlaps.emplace_back(std::make_unique<fb::KvOverlapT>());
                                       one.instance = instance;
                                       one.blocks = blocks;
                                     }
                                     outside->reply(query, message_traits<fb::KvMatchReply>::root, encode(reply));
                                   });
    REQUIRE(made);
    indexer = *std::move(made);
  }
  void announce() {
    first.announce();
    second.announce();
  }

  /// The answer, or the error the router refused with.
  result<fb::RouteDecisionT> ask(std::size_t items = 1, const std::string& model = "m") {
    return put(query(items, model));
  }
  fb::RouteQueryT query(std::size_t items, const std::string& model) {
    fb::RouteQueryT query;
    query.model = model;
    for (std::size_t i = 0; i < items; ++i) {
      auto& item = *query.items.emplace_back(std::make_unique<fb::RouteItemT>());
      item.request_id = "r" + std::to_string(++asked);
      item.key_mode = fb::KeyMode::Token;
      item.prompt_tokens = 70;
      item.block_size = 16;
      item.keys = prompt_keys;
    }
    return query;
  }
  result<fb::RouteDecisionT> put(const fb::RouteQueryT& query) {
    auto done = std::make_shared<std::promise<result<fb::RouteDecisionT>>>();
    auto future = done->get_future();
    outside->request<fb::RouteDecision>(outside->names().route_query(query.model), encode(query), 2s,
                                        [done](result<view<fb::RouteDecision>>&& reply) {
                                          if (!reply) return done->set_value(reply.failure());
                                          fb::RouteDecisionT out;
                                          (**reply).UnPackTo(&out);
                                          done->set_value(std::move(out));
                                        });
    if (future.wait_for(5s) != std::future_status::ready) return errc::timed_out;
    return future.get();
  }
  bool ready() {
    announce();
    const auto got = ask();
    return got && !got->choices.empty() && got->choices[0]->candidates.size() == 2;
  }
};

/// What the index and the loads say, and nothing else.
router::settings without_predictions() {
  router::settings how;
  how.prediction.enabled = false;
  return how;
}

TEST_CASE("without an indexer requests are placed by load, at once, and the answer says so") {
  setup s(without_predictions());
  REQUIRE(eventually([&] { return s.ready(); }));
  // The loads travel in order: where the second one's counts, so does the first one's.
  REQUIRE(eventually([&] {
    s.first.load(8, 0.9);
    s.second.load(0, 0.1);
    const auto got = s.ask();
    return got && got->choices[0]->reason.find("e1, kv 10 %") != std::string::npos;
  }));
  const auto got = s.ask();
  REQUIRE(got);
  const auto& choice = *got->choices[0];
  CHECK(choice.instance == "e1");
  CHECK(choice.url == "http://127.0.0.1/e1");
  CHECK_FALSE(choice.index_used);
  CHECK(choice.reason.find("kv-aware by load only (the indexer: ") == 0);
  CHECK(choice.reason.find("waiting 0") != std::string::npos);
  CHECK(choice.decide_us.has_value());
}

TEST_CASE("with an indexer the engine that holds the prompt is chosen, and decisions reach their watchers") {
  setup s(without_predictions());
  s.start_indexer("e1", 3);
  std::mutex guard;
  std::vector<fb::RouteDecisionT> watched;
  const auto watching =
      s.outside->subscribe(s.outside->names().route_decision("m"), {}, [&](inbound<fb::RouteDecision>&& m) {
        const std::lock_guard lock(guard);
        m.message->UnPackTo(&watched.emplace_back());
      });
  REQUIRE(watching);
  REQUIRE(eventually([&] { return s.ready(); }));
  REQUIRE(eventually([&] {
    s.first.load(0, 0.2);
    s.second.load(0, 0.2);
    const auto got = s.ask();
    return got && got->choices[0]->overlap_blocks == 3;
  }));
  const auto got = s.ask(2);
  REQUIRE(got);
  REQUIRE(got->choices.size() == 2);
  for (const auto& choice : got->choices) {
    CHECK(choice->instance == "e1");
    CHECK(choice->index_used);
    CHECK(choice->reason.find("kv-aware: e1 holds 3 of 4 blocks") == 0);
    REQUIRE(choice->candidates.size() == 2);
    CHECK(choice->candidates[1]->instance == "e0");
    CHECK(choice->candidates[1]->overlap_blocks == 0);
  }
  const auto last = got->choices[1]->request_id;
  CHECK(eventually([&] {
    const std::lock_guard lock(guard);
    for (const auto& m : watched)
      for (const auto& choice : m.choices)
        if (choice->request_id == last) return choice->instance == "e1";
    return false;
  }));
}

TEST_CASE("an explanation has every engine, with the filter that left it out, and leaves no trace") {
  setup s;
  s.start_indexer("e1", 3);
  std::atomic<unsigned> watched{0};
  const auto watching =
      s.outside->subscribe(s.outside->names().route_decision("m"), {}, [&](inbound<fb::RouteDecision>&& m) {
        for (const auto* choice : *m.message->choices()) watched += choice->request_id()->str().starts_with("why");
      });
  REQUIRE(watching);
  REQUIRE(eventually([&] { return s.ready(); }));
  auto query = s.query(2, "m");
  query.explain = true;
  query.items[0]->request_id = "why-0";
  query.items[1]->request_id = "why-1";
  query.items[1]->exclude = {"e1"};
  const auto got = s.put(query);
  REQUIRE(got);
  REQUIRE(got->choices.size() == 2);
  const auto& whole = *got->choices[0];
  CHECK(whole.instance == "e1");
  CHECK(whole.engines == 2);
  CHECK(whole.considered == 2);
  REQUIRE(whole.candidates.size() == 2);
  for (const auto& candidate : whole.candidates) {
    CHECK(candidate->filtered_by.empty());
    double total = 0;
    for (const auto& score : candidate->scores) total += score->value * score->weight;
    CHECK(candidate->scores.size() == 4);
    CHECK(candidate->total == doctest::Approx(total));
  }
  const auto& without = *got->choices[1];
  CHECK(without.instance == "e0");
  CHECK(without.considered == 1);
  REQUIRE(without.candidates.size() == 2);
  CHECK(without.candidates[1]->instance == "e1");
  CHECK(without.candidates[1]->filtered_by == "excluded after failing it");
  // Asked again it predicts and counts as before: nothing was routed. A decision that is, is published behind it.
  const auto again = s.put(query);
  REQUIRE(again);
  CHECK(again->choices[0]->candidates[0]->predicted_blocks == whole.candidates[0]->predicted_blocks);
  CHECK(again->choices[0]->candidates[0]->total == whole.candidates[0]->total);
  CHECK(again->choices[1]->candidates[0]->predicted_blocks == without.candidates[0]->predicted_blocks);
  CHECK(watched == 0);
}

std::string config_of(const std::string& scorer, double weight) {
  return "apiVersion: llm-d.ai/v1\n"
         "kind: EndpointPickerConfig\n"
         "plugins:\n"
         "- type: " +
         scorer +
         "\n"
         "schedulingProfiles:\n"
         "- plugins: [{pluginRef: " +
         scorer + ", weight: " + std::to_string(weight) + "}]\n";
}

TEST_CASE("a policy's file is followed: what is right is used from the next decision on, what is wrong is not") {
  char pattern[] = "/tmp/infernex-policy-XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  const auto file = folder + "/picker.yaml";
  const auto write = [&](const std::string& text) {
    // As editors and config maps do it: never half of it is there.
    std::ofstream(folder + "/next") << text;
    std::filesystem::rename(folder + "/next", file);
  };
  write(config_of("waiting-scorer", 2));
  auto how = without_predictions();
  auto read = router::load_picker_config(file);
  REQUIRE(read.spec);
  how.policy.config = *read.spec;
  how.policy.source = router::policy_source{file, read.stamp, {}};
  setup s(how);
  REQUIRE(eventually([&] { return s.ready(); }));
  /// `scorer x weight` of the present policy.
  const auto scorer = [&]() -> std::string {
    const auto got = s.ask();
    if (!got || got->choices[0]->candidates.empty()) return {};
    CHECK(got->choices[0]->strategy == "picker.yaml");
    const auto& scores = got->choices[0]->candidates[0]->scores;
    return scores.size() == 1 ? scores[0]->scorer + " x " + std::to_string(static_cast<int>(scores[0]->weight)) : "";
  };
  const auto reloads = [&](const std::string& result) {
    return s.metrics
        .counter("infernex_router_config_reloads_total",
                 "Times that a changed configuration file was read, and taken or refused", {{"result", result}})
        .Value();
  };
  CHECK(scorer() == "waiting-scorer x 2");
  write(config_of("in-flight-scorer", 5));
  CHECK(eventually([&] { return scorer() == "in-flight-scorer x 5"; }));
  CHECK(reloads("applied") == 1);
  CHECK(reloads("refused") == 0);
  write(config_of("in-flihgt-scorer", 1));
  CHECK(eventually([&] { return reloads("refused") == 1; }));
  CHECK(scorer() == "in-flight-scorer x 5");
  write(config_of("waiting-scorer", 3));
  CHECK(eventually([&] { return scorer() == "waiting-scorer x 3"; }));
  CHECK(reloads("applied") == 2);
  std::filesystem::remove_all(folder);
}

TEST_CASE("an indexer that does not answer costs no more than the limit") {
  router::settings how;
  how.match_timeout = 80ms;
  setup s(how);
  // Takes the questions and keeps silent.
  const auto silent = s.outside->subscribe(s.outside->names().any_kv_match(), {lane::rpc, "indexer", 64},
                                           [](inbound<fb::KvMatchQuery>&&) {});
  REQUIRE(silent);
  REQUIRE(eventually([&] { return s.ready(); }));
  const auto began = std::chrono::steady_clock::now();
  const auto got = s.ask();
  const auto took = std::chrono::steady_clock::now() - began;
  REQUIRE(got);
  CHECK(got->choices[0]->reason.find("the indexer did not answer in 80 ms") != std::string::npos);
  CHECK(took >= 80ms);
  CHECK(took < 1s);
}

TEST_CASE("more queries than may wait for the indexer, and larger ones than allowed, are refused") {
  router::settings how;
  how.match_timeout = 1s;
  how.max_pending = 2;
  how.max_items = 3;
  setup s(how);
  REQUIRE(eventually([&] { return s.ready(); }));  // nobody listens for questions yet: answered at once
  const auto silent = s.outside->subscribe(s.outside->names().any_kv_match(), {lane::rpc, "indexer", 64},
                                           [](inbound<fb::KvMatchQuery>&&) {});
  REQUIRE(silent);
  const auto too_many = s.ask(4);
  REQUIRE_FALSE(too_many);
  CHECK(too_many.failure().code == errc::too_large);
  std::vector<std::future<result<fb::RouteDecisionT>>> asked;
  for (int i = 0; i < 6; ++i) {
    fb::RouteQueryT query;
    query.model = "m";
    auto& item = *query.items.emplace_back(std::make_unique<fb::RouteItemT>());
    item.request_id = "p" + std::to_string(i);
    item.key_mode = fb::KeyMode::Token;
    item.keys = prompt_keys;
    auto done = std::make_shared<std::promise<result<fb::RouteDecisionT>>>();
    asked.push_back(done->get_future());
    s.outside->request<fb::RouteDecision>(s.outside->names().route_query("m"), encode(query), 4s,
                                          [done](result<view<fb::RouteDecision>>&& reply) {
                                            if (!reply) return done->set_value(reply.failure());
                                            done->set_value(fb::RouteDecisionT{});
                                          });
  }
  unsigned placed = 0;
  unsigned refused = 0;
  for (auto& one : asked) {
    REQUIRE(one.wait_for(5s) == std::future_status::ready);
    const auto got = one.get();
    placed += got.ok();
    refused += !got && got.failure().code == errc::overloaded;
  }
  CHECK(placed == 2);
  CHECK(refused == 4);
}

TEST_CASE("reservations count until a gateway's totals include the request") {
  router::settings how;
  how.policy.strategy = "least-load";
  setup s(how);
  REQUIRE(eventually([&] { return s.ready(); }));
  // Idle and equal engines take turns because of the reservations alone.
  unsigned on_first = 0;
  for (int i = 0; i < 10; ++i) {
    const auto got = s.ask();
    REQUIRE(got);
    on_first += got->choices[0]->instance == "e0";
  }
  CHECK(on_first >= 4);
  CHECK(on_first <= 6);
  // A gateway that says where they really are: all on e0.
  fb::RequestLifeT life;
  life.origin = std::make_unique<fb::OriginT>();
  life.origin->id = "gateway/test";
  life.origin->epoch = 1;
  life.origin->sequence = 1;
  life.model = "m";
  auto& total = *life.in_flight.emplace_back(std::make_unique<fb::InFlightT>());
  total.instance = "e0";
  total.requests = s.asked;
  for (unsigned i = 1; i <= s.asked; ++i) life.started.push_back("r" + std::to_string(i));
  s.outside->publish(s.outside->names().request_life("m"), encode(life));
  const auto expected = "e1, kv not measured, waiting not measured, in flight 0";
  CHECK(eventually([&] {
    const auto got = s.ask();
    if (!got) return false;
    ++life.origin->sequence;
    life.started.push_back("r" + std::to_string(s.asked));
    s.outside->publish(s.outside->names().request_life("m"), encode(life));
    return got->choices[0]->reason.find(expected) != std::string::npos;
  }));
}

TEST_CASE("a burst of one prompt lands together before any event tells of it, and metrics count why") {
  setup s;
  REQUIRE(eventually([&] { return s.ready(); }));
  s.start_indexer("e1", 0);
  REQUIRE(eventually([&] {
    s.announce();
    const auto got = s.ask();
    return got && got->choices[0]->index_used;
  }));
  const auto got = s.ask(6);
  REQUIRE(got);
  for (const auto& choice : got->choices) {
    CHECK(choice->instance == got->choices[0]->instance);
    CHECK(choice->by_prediction);
    CHECK(choice->overlap_blocks == 0);
    CHECK(choice->predicted_blocks == 4);
    CHECK(choice->reason.find(" holds 0, predicted 4 of 4 blocks") != std::string::npos);
  }
  CHECK(eventually([&] {
    const auto page = s.metrics.render();
    return page.find("infernex_router_predicted_blocks 4") != std::string::npos &&
           page.find("infernex_router_decisions_by_prediction_total 0") == std::string::npos;
  }));
  // The engine's process is replaced: its cache is empty.
  s.first.new_engine();
  s.second.new_engine();
  s.announce();
  CHECK(eventually([&] { return s.metrics.render().find("infernex_router_predicted_blocks 0") != std::string::npos; }));
}

TEST_CASE("an unknown model is answered with a reason; a dead engine is left out once it is announced down") {
  setup s;
  REQUIRE(eventually([&] { return s.ready(); }));
  const auto unknown = s.ask(1, "nobody's");
  REQUIRE(unknown);
  CHECK(unknown->choices[0]->instance.empty());
  CHECK(unknown->choices[0]->reason == "no engine of this model has been announced");
  s.first.announce(fb::EngineState::Down);
  REQUIRE(eventually([&] {
    const auto got = s.ask();
    return got && got->choices[0]->candidates.size() == 1 && got->choices[0]->instance == "e1";
  }));
  s.second.announce(fb::EngineState::Draining);
  REQUIRE(eventually([&] {
    const auto got = s.ask();
    return got && got->choices[0]->reason == "no engine of model m is ready: 1 draining, 1 down";
  }));
}

}  // namespace
}  // namespace infernex
