#include <doctest/doctest.h>

#include "actors/router/place.hpp"
#include "messages/view.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

template <class Object>
view<typename Object::TableType> message(const Object& object) {
  const auto bytes = encode(object);
  return *view<typename Object::TableType>::verify(chunk::copy_of(bytes_of(bytes)));
}

/// One prefill and one decode engine in a group.
struct pair_setup {
  fleet engines;
  reservation_book open{engines.board()};
  prediction_index predicted{prediction_settings{}};
  prediction_book routed{predicted};
  placer places{engines, open, predicted, routed, policy_of()};

  pair_setup() {
    announce("d0", fb::EngineRole::Decode);
    announce("p0", fb::EngineRole::Prefill);
  }
  static policy policy_of() {
    policy how;
    how.strategy = "infernex-pd";
    return how;
  }
  void announce(const std::string& instance, fb::EngineRole role) {
    fb::EngineAnnounceT m;
    m.origin = std::make_unique<fb::OriginT>();
    m.origin->sequence = 1;
    m.origin->epoch = 1;
    m.model = "m";
    m.instance = instance;
    m.url = "http://" + instance + ":8000";
    m.state = fb::EngineState::Ready;
    m.role = role;
    m.pd_group = "g";
    engines.on_announce(*message(m), now);
  }
  load_reading load_of(const std::string& instance) {
    published<topology>::reader seen(engines.topologies());
    return engines.board().read(seen.get()->models.at("m").find(instance)->slot, now);
  }
  std::unique_ptr<fb::RouteChoiceT> place() {
    fb::RouteQueryT q;
    q.model = "m";
    auto& item = *q.items.emplace_back(std::make_unique<fb::RouteItemT>());
    item.request_id = "r1";
    item.key_mode = fb::KeyMode::Token;
    item.prompt_tokens = 165;
    item.block_size = 16;
    for (std::uint64_t k = 0; k < 10; ++k) item.keys.push_back(100 + k);
    const auto asked = message(q);
    return std::move(places.place(*asked, {nullptr, "no question"}, now).choices.at(0));
  }
  void tell(bool over, unsigned attempts = 1, unsigned status = 200) {
    fb::RequestLifeT life;
    life.model = "m";
    if (over) {
      auto& one = *life.finished.emplace_back(std::make_unique<fb::FinishedT>());
      one.request_id = "r1";
      one.instance = "d0";
      one.status = static_cast<std::uint16_t>(status);
      one.attempts = static_cast<std::uint8_t>(attempts);
    } else {
      life.started.emplace_back("r1");
    }
    places.on_life(*message(life), now);
  }
};

TEST_CASE("a pair is named, and counts at both engines: the prompt where it is computed, its blocks at both") {
  pair_setup s;
  const auto choice = s.place();
  CHECK(choice->instance == "d0");
  CHECK(choice->prefill_instance == "p0");
  CHECK(choice->prefill_url == "http://p0:8000");
  CHECK(choice->pd_group == "g");
  CHECK(s.load_of("p0").in_flight == 1);
  CHECK(s.load_of("p0").prefill_tokens == 165);
  CHECK(s.load_of("p0").active_blocks == 11);
  CHECK(s.load_of("d0").in_flight == 1);
  CHECK(s.load_of("d0").prefill_tokens == 0);
  CHECK(s.load_of("d0").active_blocks == 11);
}

TEST_CASE("both reservations of a pair end when its gateway counts the request, or it is over") {
  for (const bool over : {false, true}) {
    CAPTURE(over);
    pair_setup s;
    s.place();
    s.tell(over);
    CHECK(s.load_of("p0").in_flight == 0);
    CHECK(s.load_of("p0").prefill_tokens == 0);
    CHECK(s.load_of("d0").in_flight == 0);
    CHECK(s.open.open() == 0);
  }
}

TEST_CASE("a pair's prompt is expected in the cache of the engine that computed it, also after its end") {
  pair_setup s;
  s.place();
  CHECK(s.place()->predicted_blocks == 10);
  s.tell(true);
  CHECK(s.routed.open() == 0);
  CHECK(s.place()->predicted_blocks == 10);
}

TEST_CASE("what was expected of a pair that was given up, or that failed, is expected no more") {
  for (const auto& [attempts, status] : {std::pair{2U, 200U}, std::pair{1U, 503U}}) {
    CAPTURE(attempts);
    pair_setup s;
    s.place();
    s.tell(true, attempts, status);
    CHECK(s.routed.open() == 0);
    CHECK(s.place()->predicted_blocks == 0);
  }
}

}  // namespace
}  // namespace infernex::router
