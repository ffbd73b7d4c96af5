#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

/// A router in whose queue requests wait until they are told.
class queueing_router {
 public:
  explicit queueing_router(bus& on) : on_(on) {
    auto made =
        on.subscribe(on.names().any_route_query(), {lane::rpc, "router", 64}, [this](inbound<fb::RouteQuery>&& query) {
          const std::lock_guard lock(guard_);
          if (query.message->items()->size() == 0) return void(started_ = true);
          for (const auto* item : *query.message->items()) {
            held_.push_back({text(item->request_id()).data(), query.reply_to});
            deadline_ = item->deadline_ms().value_or(0);
            say(held_.back(), fb::Queueing::Waiting);
          }
        });
    REQUIRE(made.ok());
    subscription_ = *std::move(made);
    on.request<fb::RouteDecision>(on.names().route_query("m"), gateway::encode_route_query("test", 1, 1, "m", {}), 1ms,
                                  [](auto&&) {});
    REQUIRE(eventually([this] {
      const std::lock_guard lock(guard_);
      return started_;
    }));
  }
  std::size_t held() {
    const std::lock_guard lock(guard_);
    return held_.size();
  }
  std::uint32_t deadline() {
    const std::lock_guard lock(guard_);
    return deadline_;
  }
  /// To the request asked `n`-th.
  void end(std::size_t n, fb::Queueing how, const std::string& instance = {}, const std::string& url = {}) {
    const std::lock_guard lock(guard_);
    say(held_.at(n), how, instance, url);
  }
  void die(std::size_t n) {
    const std::lock_guard lock(guard_);
    on_.refuse(held_.at(n).reply_to, errc::unreachable);
  }

 private:
  struct one {
    std::string request_id;
    std::string reply_to;
  };
  void say(const one& to, fb::Queueing how, const std::string& instance = {}, const std::string& url = {}) {
    fb::RouteDecisionT out;
    auto& choice = *out.choices.emplace_back(std::make_unique<fb::RouteChoiceT>());
    choice.request_id = to.request_id;
    choice.queueing = how;
    choice.instance = instance;
    choice.url = url;
    choice.reason = "as the test says";
    if (how == fb::Queueing::Shed) choice.retry_after_ms = 2'500;
    if (how == fb::Queueing::Shed && instance == "waited") {
      choice.instance.clear();
      choice.queued_ms = 10;
    }
    on_.reply_to(to.reply_to, message_traits<fb::RouteDecision>::root, encode(out));
  }
  bus& on_;
  std::mutex guard_;
  bool started_ = false;
  std::vector<one> held_;
  std::uint32_t deadline_ = 0;
  subscription subscription_;
};

}  // namespace

TEST_CASE("a request waits in a router's queue, past the route time-out, and goes where it is released to") {
  fake_engine e0("e0");
  gateway::settings how;
  how.route_timeout = 100ms;
  gateway_fixture g(how);
  g.add({&e0});
  queueing_router router(*g.outside);
  auto client = g.socket();
  REQUIRE(client.send(gateway_fixture::chat_bytes()));
  REQUIRE(eventually([&] { return router.held() == 1; }));
  CHECK(router.deadline() > 100'000);
  router.end(0, fb::Queueing::Waiting);  // a sign of life
  router.end(0, fb::Queueing::Released, "e0", e0.url());
  const auto answer = client.read_response();
  CHECK(answer.starts_with("HTTP/1.1 200 OK"));
  CHECK(answer.find("as the test says") != std::string::npos);
  CHECK(g.metric("infernex_gateway_route_fallbacks_total") == 0);
}

TEST_CASE("a request that is shed: 429 at once, 503 after a wait, with Retry-After and the reason") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  queueing_router router(*g.outside);
  for (const bool waited : {false, true}) {
    auto client = g.socket();
    const auto before = router.held();
    REQUIRE(client.send(gateway_fixture::chat_bytes()));
    REQUIRE(eventually([&] { return router.held() == before + 1; }));
    router.end(before, fb::Queueing::Shed, waited ? "waited" : "");
    const auto answer = client.read_response();
    CHECK(answer.starts_with(waited ? "HTTP/1.1 503" : "HTTP/1.1 429"));
    CHECK(answer.find("Retry-After: 3") != std::string::npos);
    CHECK(answer.find("is saturated: as the test says") != std::string::npos);
  }
}

TEST_CASE("a router that goes away while a request waits in it: another is asked") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  queueing_router router(*g.outside);
  auto client = g.socket();
  REQUIRE(client.send(gateway_fixture::chat_bytes()));
  REQUIRE(eventually([&] { return router.held() == 1; }));
  router.die(0);
  REQUIRE(eventually([&] { return router.held() == 2; }));
  router.end(1, fb::Queueing::Released, "e0", e0.url());
  CHECK(client.read_response().starts_with("HTTP/1.1 200 OK"));
  CHECK(g.metric("infernex_gateway_route_lost_total") == 1);
}

TEST_CASE("a client that leaves while its request waits: the router is told that it has ended") {
  fake_engine e0("e0");
  gateway_fixture g;
  g.add({&e0});
  std::atomic<unsigned> gone{0};
  const auto lives = g.outside->subscribe(g.outside->names().request_life("m"), {}, [&](inbound<fb::RequestLife>&& m) {
    if (!m.message->finished()) return;
    for (const auto* one : *m.message->finished()) gone += one->outcome() == fb::Outcome::ClientGone;
  });
  REQUIRE(lives);
  queueing_router router(*g.outside);
  {
    auto client = g.socket();
    REQUIRE(client.send(gateway_fixture::chat_bytes()));
    REQUIRE(eventually([&] { return router.held() == 1; }));
  }
  CHECK(eventually([&] { return gone == 1; }));
}

TEST_CASE("embedded: while every engine is saturated requests wait in the process") {
  fake_engine e0("e0");
  gateway::settings how;
  how.router = gateway::router_mode::embedded;
  how.policy.queue.objectives = {{"batch", -1}};
  gateway_fixture g(how, std::make_shared<indexer::index_set>());
  g.add({&e0});
  std::uint64_t sequence = 0;
  const auto load = [&](std::uint32_t waiting) {
    fb::EngineLoadT m;
    m.origin = std::make_unique<fb::OriginT>();
    m.origin->id = "agent/e0";
    m.origin->epoch = 1;
    m.origin->sequence = ++sequence;
    m.model = "m";
    m.instance = "e0";
    m.running = 3;
    m.waiting = waiting;
    m.kv_usage = 0.1;
    g.outside->publish(g.outside->names().load("m", "e0"), encode(m));
  };
  const http::fields batch{{"x-llm-d-inference-objective", "batch"}};
  REQUIRE(eventually([&] {
    load(9);
    return g.chat({}, batch).status == 429;
  }));
  auto client = g.socket();
  REQUIRE(client.send(gateway_fixture::chat_bytes()));
  auto impatient = std::make_unique<raw_socket>(g.socket());
  REQUIRE(impatient->send(gateway_fixture::chat_bytes()));
  REQUIRE(eventually([&] { return g.metric("infernex_gateway_queue_length") == 2; }));
  impatient.reset();
  REQUIRE(eventually([&] { return g.metric("infernex_gateway_queue_length") == 1; }));
  CHECK(g.metric("infernex_gateway_queue_left_total") == 1);
  load(0);
  const auto answer = client.read_response();
  CHECK(answer.starts_with("HTTP/1.1 200 OK"));
  CHECK(answer.find("x-infernex-decision: waited ") != std::string::npos);
  CHECK(g.metric("infernex_gateway_queue_released_total") == 1);
}
