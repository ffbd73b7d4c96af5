#include <future>
#include <mutex>

#include <doctest/doctest.h>

#include "tests/component/router/fixture.hpp"

namespace infernex {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::fake_agent;
using test::prompt_keys;
using setup = test::router_setup;
using test::without_predictions;

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
  router::settings how;
  how.policy.strategy = "kv-aware";
  setup s(how);
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

TEST_CASE("a router says its name, answers queries by it, and says when it leaves") {
  setup s;
  std::mutex guard;
  std::vector<fb::RouterAnnounceT> said;
  auto watching = s.outside->subscribe(s.outside->names().any_router_announce(), {lane::rpc, {}, 64},
                                       [&](inbound<fb::RouterAnnounce>&& m) {
                                         const std::lock_guard lock(guard);
                                         m.message->UnPackTo(&said.emplace_back());
                                       });
  REQUIRE(watching);
  const auto heard = [&](bool leaving) {
    const std::lock_guard lock(guard);
    return !said.empty() && said.back().router == "test-1" && said.back().leaving == leaving;
  };
  REQUIRE(eventually([&] { return heard(false); }));
  REQUIRE(eventually([&] {
    s.announce();
    const auto got = s.ask();
    return got && !got->choices.at(0)->instance.empty();
  }));
  std::promise<std::string> answered;
  s.outside->request<fb::RouteDecision>(
      s.outside->names().route_query_of("m", "test-1"), encode(s.query(1, "m")), 2s,
      [&](result<view<fb::RouteDecision>>&& reply) {
        answered.set_value(reply ? std::string(text((*reply)->choices()->Get(0)->instance()))
                                 : render(reply.failure()));
      });
  const auto instance = answered.get_future().get();
  CHECK_MESSAGE((instance == "e0" || instance == "e1"), instance);
  s.router->stop(2s);
  CHECK(eventually([&] { return heard(true); }));
}

}  // namespace
}  // namespace infernex
