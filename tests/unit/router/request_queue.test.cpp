#include "actors/router/request_queue.hpp"

#include <doctest/doctest.h>

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

template <class Object>
view<typename Object::TableType> message(const Object& object) {
  const auto bytes = encode(object);
  return *view<typename Object::TableType>::verify(chunk::copy_of(bytes_of(bytes)));
}

struct queue_setup {
  policy how;
  fleet engines;
  reservation_book open{engines.board()};
  prediction_index predicted{prediction_settings{}};
  prediction_book routed{predicted};
  std::unique_ptr<placer> places;
  std::unique_ptr<request_queue> queue;
  std::uint64_t sequence = 0;
  unsigned asked = 0;

  explicit queue_setup(std::uint32_t max_requests = 1'024, policy from = {}) : how(std::move(from)) {
    how.queue.max_requests = max_requests;
    how.queue.objectives = {{"batch", -1}, {"chat", 5}};
    places = std::make_unique<placer>(engines, open, predicted, routed, how);
    queue = std::make_unique<request_queue>(*places, engines.board(), how);
    for (const auto* instance : {"e0", "e1"}) {
      fb::EngineAnnounceT m;
      m.origin = std::make_unique<fb::OriginT>();
      m.origin->sequence = ++sequence;
      m.origin->epoch = 1;
      m.model = "m";
      m.instance = instance;
      m.url = std::string("http://") + instance;
      m.state = fb::EngineState::Ready;
      engines.on_announce(*message(m), now);
    }
  }
  void load(const std::string& instance, std::uint32_t waiting, clock_point at) {
    fb::EngineLoadT m;
    m.origin = std::make_unique<fb::OriginT>();
    m.origin->sequence = ++sequence;
    m.origin->epoch = 1;
    m.model = "m";
    m.instance = instance;
    m.running = 8;
    m.waiting = waiting;
    m.kv_usage = 0.1;
    engines.on_load(*message(m), at);
  }
  void fill(clock_point at = now) {
    load("e0", 9, at);
    load("e1", 9, at);
  }
  fb::RouteQueryT query(std::size_t items, std::vector<std::pair<std::string, std::string>> headers = {}) {
    fb::RouteQueryT q;
    q.origin = std::make_unique<fb::OriginT>();
    q.origin->id = "gateway/1";
    q.model = "m";
    for (std::size_t i = 0; i < items; ++i) {
      auto& item = *q.items.emplace_back(std::make_unique<fb::RouteItemT>());
      item.request_id = "r" + std::to_string(++asked);
      item.prompt_tokens = 100;
      item.max_tokens = 100;
      for (const auto& [name, value] : headers) {
        auto& h = *item.headers.emplace_back(std::make_unique<fb::RoutingHeaderT>());
        h.name = name;
        h.value = value;
      }
    }
    return q;
  }
  fb::RouteDecisionT ask(const fb::RouteQueryT& q, clock_point at = now) {
    return queue->place(message(q), "inbox." + std::to_string(asked), {nullptr, "no question"}, at);
  }
  fb::RouteDecisionT one(std::vector<std::pair<std::string, std::string>> headers = {}, clock_point at = now) {
    return ask(query(1, std::move(headers)), at);
  }
};

bool says(const fb::RouteChoiceT& choice, std::string_view what) {
  return choice.reason.find(what) != std::string::npos;
}

TEST_CASE("requests wait only while every engine is saturated, and go to the one with room") {
  queue_setup s;
  CHECK(s.one().choices[0]->queueing == fb::Queueing::None);  // not measured
  s.load("e0", 9, now);
  CHECK(s.one().choices[0]->queueing == fb::Queueing::None);
  s.fill();
  const auto first = s.one();
  REQUIRE(first.choices.size() == 1);
  CHECK(first.choices[0]->queueing == fb::Queueing::Waiting);
  CHECK(first.choices[0]->instance.empty());
  CHECK(first.choices[0]->queue_position == 1);
  CHECK(says(*first.choices[0], "every engine is saturated: waits at place 1"));
  CHECK(s.queue->release(now + 1s).empty());
  // Room at one of them; newcomers stand behind who waits already.
  s.load("e1", 3, now + 2s);
  const auto newcomer = s.one({}, now + 2s);
  CHECK(newcomer.choices[0]->queueing == fb::Queueing::Waiting);
  CHECK(newcomer.choices[0]->queue_position == 2);
  CHECK(says(*newcomer.choices[0], "others wait for an engine already"));
  auto released = s.queue->release(now + 2s);
  REQUIRE(released.size() == 2);
  CHECK(released[0].reply_to == "inbox.3");
  const auto& choice = *released[0].answer.choices.at(0);
  CHECK(choice.request_id == "r3");
  CHECK(choice.queueing == fb::Queueing::Released);
  CHECK(choice.instance == "e1");
  CHECK(choice.url == "http://e1");
  CHECK(choice.queued_ms == 2'000);
  CHECK(choice.reason.find("waited 2000 ms for an engine; ") == 0);
  CHECK(released[1].answer.choices[0]->request_id == "r4");
  // Both count at once: that was all the room there was.
  CHECK(s.one({}, now + 2s).choices[0]->queueing == fb::Queueing::Waiting);
  CHECK(s.queue->release(now + 2s).empty());
  CHECK(s.queue->count().released == 2);
}

TEST_CASE("as many are released as there is room, the higher priority first, tenants in turn") {
  queue_setup s;
  s.fill();
  const auto put = [&](std::string tenant, std::string objective) {
    s.one({{"x-llm-d-inference-fairness-id", tenant}, {"x-llm-d-inference-objective", objective}});
    return "r" + std::to_string(s.asked);
  };
  std::vector<std::string> a, b;
  for (int i = 0; i < 6; ++i) a.push_back(put("a", "0"));
  for (int i = 0; i < 6; ++i) b.push_back(put("b", "0"));
  const auto chat = put("a", "chat");
  s.load("e0", 0, now + 1s);
  const auto released = s.queue->release(now + 1s);
  REQUIRE(released.size() == 5);  // the depth of an engine's own queue
  std::vector<std::string> order;
  for (const auto& one : released) {
    CHECK(one.answer.choices[0]->instance == "e0");
    order.push_back(one.answer.choices[0]->request_id);
  }
  CHECK(order[0] == chat);
  int of_a = 0;
  for (std::size_t i = 1; i < order.size(); ++i) of_a += std::find(a.begin(), a.end(), order[i]) != a.end();
  CHECK(of_a == 2);
  // One has ended at the engine: room for one more, without a new measurement.
  fb::RequestLifeT life;
  life.origin = std::make_unique<fb::OriginT>();
  life.origin->id = "gateway/1";
  life.origin->sequence = 1;
  life.model = "m";
  auto& finished = *life.finished.emplace_back(std::make_unique<fb::FinishedT>());
  finished.request_id = order[0];
  s.places->on_life(*message(life), now + 1s);
  s.queue->on_life(*message(life));
  CHECK(s.queue->release(now + 1s).size() == 1);
}

TEST_CASE("sheds say why and when to come again") {
  queue_setup s(2);
  s.fill();
  const auto sheddable = s.one({{"x-llm-d-inference-objective", "batch"}});
  CHECK(sheddable.choices[0]->queueing == fb::Queueing::Shed);
  CHECK(says(*sheddable.choices[0], "every engine is saturated, and a request of priority -1 does not wait"));
  CHECK(sheddable.choices[0]->retry_after_ms == 1'000);
  CHECK_FALSE(sheddable.choices[0]->queued_ms);
  // The third of a query finds the line full.
  const auto three = s.ask(s.query(3));
  REQUIRE(three.choices.size() == 3);
  CHECK(three.choices[1]->queueing == fb::Queueing::Waiting);
  CHECK(three.choices[2]->queueing == fb::Queueing::Shed);
  CHECK(says(*three.choices[2], "the line is full: 2 requests wait for an engine"));
  // A higher priority puts the newest out, and that one hears of it.
  const auto chat = s.one({{"x-llm-d-inference-objective", "chat"}}, now + 1s);
  CHECK(chat.choices[0]->queueing == fb::Queueing::Waiting);
  auto later = s.queue->release(now + 1s);
  REQUIRE(later.size() == 1);
  CHECK(later[0].answer.choices[0]->request_id == three.choices[1]->request_id);
  CHECK(later[0].answer.choices[0]->queueing == fb::Queueing::Shed);
  CHECK(later[0].answer.choices[0]->queued_ms == 1'000);
  CHECK(says(*later[0].answer.choices[0], "made room for another"));
  s.fill(now + 29s);
  s.queue->on_tick(now + 29s);
  later = s.queue->on_tick(now + 30s);
  const auto expired = std::find_if(later.begin(), later.end(), [](const auto& one) {
    return one.answer.choices[0]->queueing == fb::Queueing::Shed;
  });
  REQUIRE(expired != later.end());
  CHECK(says(*expired->answer.choices[0], "waited too long: 30 s"));
  CHECK(s.queue->count().too_long == 1);
  CHECK(s.queue->count().full == 2);
  CHECK(s.queue->count().sheddable == 1);
}

TEST_CASE("a request's own deadline ends its wait, its client's leaving gives the place back") {
  queue_setup s;
  s.fill();
  auto q = s.query(1);
  q.items[0]->deadline_ms = 500;
  s.ask(q);
  s.one();
  CHECK(s.queue->waiting() == 2);
  auto later = s.queue->on_tick(now + 500ms);
  REQUIRE(!later.empty());
  CHECK(later[0].answer.choices[0]->request_id == "r1");
  CHECK(later[0].answer.choices[0]->queueing == fb::Queueing::Shed);
  fb::RequestLifeT life;
  life.origin = std::make_unique<fb::OriginT>();
  life.origin->id = "gateway/2";
  auto& record = *life.finished.emplace_back(std::make_unique<fb::FinishedT>());
  record.request_id = "r2";
  record.outcome = fb::Outcome::ClientGone;
  s.queue->on_life(*message(life));
  CHECK(s.queue->waiting() == 1);  // the same id, but of another gateway
  life.origin->id = "gateway/1";
  for (const auto other : {fb::Outcome::Completed, fb::Outcome::Rejected}) {
    record.outcome = other;
    s.queue->on_life(*message(life));
    CHECK(s.queue->waiting() == 1);  // one that was given the same id
  }
  record.outcome = fb::Outcome::ClientGone;
  s.queue->on_life(*message(life));
  CHECK(s.queue->waiting() == 0);
  CHECK(s.queue->count().left == 1);
}

TEST_CASE("those who wait get a sign of life every second; a router that ends tells whom it leaves") {
  queue_setup s;
  s.fill();
  s.ask(s.query(2));
  s.one();
  s.queue->on_tick(now);
  CHECK(s.queue->on_tick(now + 500ms).empty());
  const auto signs = s.queue->on_tick(now + 1s);
  REQUIRE(signs.size() == 2);  // one a query
  CHECK(signs[0].answer.choices.size() + signs[1].answer.choices.size() == 3);
  for (const auto& sign : signs)
    for (const auto& choice : sign.answer.choices) CHECK(choice->queueing == fb::Queueing::Waiting);
  CHECK(s.queue->abandon() == std::vector<std::string>{"inbox.2", "inbox.3"});
  CHECK(s.queue->waiting() == 0);
}

TEST_CASE("explanations never wait, nor anyone where queueing is off, nor who cannot be answered twice") {
  queue_setup s;
  s.fill();
  auto explained = s.query(1);
  explained.explain = true;
  CHECK(s.ask(explained).choices[0]->instance != "");
  CHECK(s.queue->place(message(s.query(1)), "", {nullptr, "x"}, now).choices[0]->instance != "");
  CHECK(s.queue->waiting() == 0);
  policy off;
  off.queue.enabled = false;
  queue_setup without(10, off);
  without.fill();
  CHECK(without.one().choices[0]->queueing == fb::Queueing::None);
}

TEST_CASE("when every engine has gone, those who wait are told so rather than kept") {
  queue_setup s;
  s.fill();
  s.one();
  s.engines.on_tick(now + 7s);  // silent for longer than agents ever are
  const auto later = s.queue->release(now + 7s);
  REQUIRE(later.size() == 1);
  CHECK(later[0].answer.choices[0]->instance.empty());
  CHECK(later[0].answer.choices[0]->queueing == fb::Queueing::Released);
}

}  // namespace
}  // namespace infernex::router
