#include "actors/router/saturation.hpp"

#include <doctest/doctest.h>

#include "actors/router/request_terms.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

struct board_setup {
  load_board board{8};
  model_endpoints model{"m", {}};
  void add(const char* instance, fb::EngineRole role = fb::EngineRole::Aggregated) {
    endpoint e;
    e.instance = instance;
    e.role = role;
    e.state = fb::EngineState::Ready;
    e.slot = *board.acquire();
    model.endpoints.push_back(e);
  }
  slot_ref slot(std::size_t i) { return model.endpoints[i].slot; }
};

TEST_CASE("an engine is saturated by its queue, its KV blocks or, if configured, what is in flight there") {
  const saturation_limits limits;
  load_reading load;
  CHECK_FALSE(is_saturated(load, limits));  // nothing measured is not full
  load.waiting = 4;
  load.kv_usage = 0.79;
  CHECK_FALSE(is_saturated(load, limits));
  load.waiting = 5;
  CHECK(is_saturated(load, limits));
  load.waiting = 0;
  load.kv_usage = 0.8;
  CHECK(is_saturated(load, limits));
  CHECK_FALSE(has_room(load, limits));
  load.kv_usage.reset();
  load.in_flight = 1'000;
  CHECK_FALSE(is_saturated(load, limits));
  CHECK(is_saturated(load, {5, 0.8, 1'000}));
  CHECK_FALSE(is_saturated(load, {5, 0.8, 1'001}));
}

TEST_CASE("what was placed since the measurement counts where there was a backlog, and for releases always") {
  board_setup s;
  s.add("e0");
  s.board.report(s.slot(0), 10, 0, 0.1, now);
  s.board.reserve(s.slot(0), {5});
  auto load = s.board.read(s.slot(0), now);
  CHECK(load.placed_since == 5);
  CHECK_FALSE(is_saturated(load, {}));  // its batch may have room for many more
  CHECK_FALSE(has_room(load, {}));
  s.board.report(s.slot(0), 10, 4, 0.1, now + 1s);
  load = s.board.read(s.slot(0), now + 1s);
  CHECK(load.placed_since == 0);
  CHECK(has_room(load, {}));
  s.board.reserve(s.slot(0), {1});
  load = s.board.read(s.slot(0), now + 1s);
  CHECK(is_saturated(load, {}));
  CHECK_FALSE(has_room(load, {}));
  // Two have ended: one of those that waited runs now.
  s.board.unreserve(s.slot(0), {2});
  load = s.board.read(s.slot(0), now + 1s);
  CHECK(load.placed_since == -1);
  CHECK_FALSE(is_saturated(load, {}));
  CHECK(has_room(load, {}));
  // A measurement that is too old is none.
  load = s.board.read(s.slot(0), now + 1min);
  CHECK_FALSE(load.waiting);
  CHECK(load.placed_since == 0);
}

TEST_CASE("everywhere looks at those engines only that could take the request") {
  board_setup s;
  for (const auto* name : {"e0", "e1", "e2"}) s.add(name);
  s.add("p0", fb::EngineRole::Prefill);
  s.add("d0", fb::EngineRole::Decode);
  for (std::size_t i = 0; i < 3; ++i) s.board.report(s.slot(i), 10, 9, 0.1, now);
  saturation check({});
  CHECK(check.everywhere(s.model, {}, s.board, now));
  CHECK_FALSE(check.everywhere(s.model, {{}, {}, true}, s.board, now));  // the decode engine
  s.board.report(s.slot(4), 10, 9, 0.1, now);
  CHECK(check.everywhere(s.model, {{}, {}, true}, s.board, now));
  s.board.report(s.slot(1), 10, 0, 0.1, now);
  CHECK_FALSE(check.everywhere(s.model, {}, s.board, now));
  CHECK_FALSE(check.everywhere(s.model, {}, s.board, now));
  const std::string_view failed[] = {"e1"};
  CHECK(check.everywhere(s.model, {{}, failed}, s.board, now));
  s.model.endpoints[0].adapters = {"lora"};
  CHECK(check.everywhere(s.model, {"lora"}, s.board, now));
  CHECK_FALSE(check.everywhere(s.model, {"other"}, s.board, now));  // nobody serves it: that is another answer
  s.model.endpoints[1].state = fb::EngineState::Down;
  CHECK(check.everywhere(s.model, {}, s.board, now));
  std::vector<std::string_view> full;
  check.append_full(s.model, s.board, now, full);
  CHECK(full == std::vector<std::string_view>{"e0", "e1", "e2", "d0"});
}

TEST_CASE("terms of a request come from its headers, the new names first") {
  using headers = std::vector<std::pair<std::string_view, std::string_view>>;
  queue_settings how;
  how.objectives = {{"chat", 10}, {"batch", -2}};
  auto terms = terms_of({}, how);
  CHECK(terms.tenant == "default-flow");
  CHECK(terms.priority == 0);
  CHECK_FALSE(terms.ttft);
  terms = terms_of(headers{{"x-gateway-inference-fairness-id", "old"},
                           {"x-gateway-inference-objective", "batch"},
                           {"x-slo-ttft-ms", "250"}},
                   how);
  CHECK(terms.tenant == "old");
  CHECK(terms.priority == -2);
  CHECK(terms.ttft == 250ms);
  terms = terms_of(headers{{"x-gateway-inference-fairness-id", "old"},
                           {"x-llm-d-inference-fairness-id", "new"},
                           {"x-llm-d-inference-objective", "7"},
                           {"x-llm-d-slo-ttft-ms", "-3"}},
                   how);
  CHECK(terms.tenant == "new");
  CHECK(terms.priority == 7);
  CHECK_FALSE(terms.ttft);
  CHECK(terms_of(headers{{"x-llm-d-inference-objective", "unheard-of"}}, how).priority == 0);
  CHECK(terms_of(headers{{"x-llm-d-inference-objective", "2000000000"}}, how).priority == most_priority);
  CHECK(terms_of(headers{{"x-llm-d-inference-objective", "99999999999999"}}, how).priority == 0);
}

}  // namespace
}  // namespace infernex::router
