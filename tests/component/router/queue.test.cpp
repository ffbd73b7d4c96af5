#include <map>
#include <mutex>

#include <doctest/doctest.h>

#include "tests/component/router/fixture.hpp"

namespace infernex {
namespace {

using namespace std::chrono_literals;
using test::eventually;

/// Queries whose answers come in several messages, by request id.
struct asker {
  test::router_setup& s;
  std::mutex guard;
  std::map<std::string, std::vector<fb::RouteChoiceT>> heard;
  std::vector<std::string> order;  // of releases
  unsigned failures = 0;

  std::string ask(std::vector<std::pair<std::string, std::string>> headers = {}) {
    auto q = s.query(1, "m");
    q.origin = std::make_unique<fb::OriginT>();
    q.origin->id = "gateway/test";
    for (const auto& [name, value] : headers) {
      auto& h = *q.items[0]->headers.emplace_back(std::make_unique<fb::RoutingHeaderT>());
      h.name = name;
      h.value = value;
    }
    const auto id = q.items[0]->request_id;
    s.outside->converse<fb::RouteDecision>(s.outside->names().route_query("m"), encode(q), 2s,
                                           [this](result<view<fb::RouteDecision>>&& reply) {
                                             const std::lock_guard lock(guard);
                                             if (!reply) {
                                               ++failures;
                                               return 0ms;
                                             }
                                             bool waits = false;
                                             for (const auto* c : *(**reply).choices()) {
                                               waits = waits || c->queueing() == fb::Queueing::Waiting;
                                               if (c->queueing() == fb::Queueing::Released)
                                                 order.push_back(c->request_id()->str());
                                               c->UnPackTo(&heard[c->request_id()->str()].emplace_back());
                                             }
                                             return waits ? 3'000ms : 0ms;
                                           });
    REQUIRE(eventually([&] { return said(id) >= 1; }));
    return id;
  }
  std::size_t said(const std::string& id) {
    const std::lock_guard lock(guard);
    return heard[id].size();
  }
  fb::Queueing last(const std::string& id) {
    const std::lock_guard lock(guard);
    return heard[id].empty() ? fb::Queueing::None : heard[id].back().queueing;
  }
};

TEST_CASE("saturated engines: requests wait, and are released by priority to the engine with room") {
  test::router_setup s(test::without_predictions());
  asker a{s, {}, {}, {}};
  REQUIRE(eventually([&] { return s.ready(); }));
  REQUIRE(eventually([&] {
    s.first.load(9, 0.2);
    s.second.load(9, 0.2);
    return a.last(a.ask()) == fb::Queueing::Waiting;
  }));
  const auto plain = a.ask({{"x-llm-d-inference-fairness-id", "a"}});
  const auto urgent = a.ask({{"x-llm-d-inference-objective", "4"}});
  const auto gone = a.ask({{"x-llm-d-inference-objective", "9"}});
  const auto sheddable = a.ask({{"x-llm-d-inference-objective", "-1"}});
  CHECK(a.last(sheddable) == fb::Queueing::Shed);
  // Its client leaves: the place is given back, though it would have been the first.
  fb::RequestLifeT life;
  life.origin = std::make_unique<fb::OriginT>();
  life.origin->id = "gateway/test";
  life.origin->epoch = 1;
  life.origin->sequence = 1;
  life.model = "m";
  life.finished.emplace_back(std::make_unique<fb::FinishedT>())->request_id = gone;
  life.finished.back()->outcome = fb::Outcome::ClientGone;
  s.outside->publish(s.outside->names().request_life("m"), encode(life), lane::stream);
  auto& left = s.metrics.counter("infernex_router_queue_left_total", "Requests whose clients left while they waited");
  REQUIRE(eventually([&] { return left.Value() == 1; }));
  CHECK(eventually([&] { return a.said(plain) >= 3; }));  // signs of life
  s.second.load(1, 0.2);
  REQUIRE(eventually([&] { return a.last(urgent) == fb::Queueing::Released; }));
  REQUIRE(eventually([&] { return a.last(plain) == fb::Queueing::Released; }));
  const std::lock_guard lock(a.guard);
  CHECK(a.order.at(0) == urgent);
  CHECK(std::find(a.order.begin(), a.order.end(), gone) == a.order.end());
  const auto& choice = a.heard[urgent].back();
  CHECK(choice.instance == "e1");
  CHECK(choice.queued_ms.value_or(0) > 0);
  CHECK(choice.reason.find("waited ") == 0);
  CHECK(a.failures == 0);
}

TEST_CASE("a router that ends tells those who wait in it") {
  test::router_setup s(test::without_predictions());
  asker a{s, {}, {}, {}};
  REQUIRE(eventually([&] { return s.ready(); }));
  REQUIRE(eventually([&] {
    s.first.load(9, 0.2);
    s.second.load(9, 0.2);
    return a.last(a.ask()) == fb::Queueing::Waiting;
  }));
  s.router->stop(2s);
  CHECK(eventually([&] {
    const std::lock_guard lock(a.guard);
    return a.failures >= 1;
  }));
}

}  // namespace
}  // namespace infernex
