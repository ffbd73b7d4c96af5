#include "gateway/waiting_room.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "gateway/answers.hpp"

namespace infernex::gateway {
namespace {

using namespace std::chrono_literals;
using word = waiting_room::word;
constexpr router::clock_point now{1'000s};

struct room_setup {
  router::load_board board{4};
  router::topology topology;
  waiting_room room;
  std::vector<std::pair<int, word>> heard;
  int asked = 0;

  explicit room_setup(std::uint32_t max_requests = 100) : room(limits(max_requests)) {
    auto& model = topology.models["m"];
    model.model = "m";
    for (const auto* name : {"e0", "e1"}) {
      auto& e = model.endpoints.emplace_back();
      e.instance = name;
      e.state = fb::EngineState::Ready;
      e.slot = *board.acquire();
      measure(model.endpoints.size() - 1, 9);
    }
  }
  static router::queue_settings limits(std::uint32_t max_requests) {
    router::queue_settings how;
    how.max_requests = max_requests;
    return how;
  }
  void measure(std::size_t i, std::uint32_t waiting) {
    board.report(topology.models["m"].endpoints[i].slot, 8, waiting, 0.1, now);
  }
  std::optional<waiting_room::place> enter(std::int32_t priority = 0, router::engine_wanted wanted = {}) {
    const auto number = asked++;
    return room.enter(
        {"m", "t", priority}, wanted, [this, number](word w) { heard.emplace_back(number, w); }, now);
  }
};

TEST_CASE("as many are told to go as all engines have room for, those told and not placed yet included") {
  room_setup s;
  CHECK(s.room.empty());
  std::vector<waiting_room::ticket> who;
  for (int i = 0; i < 6; ++i) who.push_back(s.enter()->who);
  CHECK(s.room.waits_for("m"));
  CHECK_FALSE(s.room.waits_for("n"));
  s.room.call(&s.topology, s.board, now);
  CHECK(s.heard.empty());
  s.measure(0, 3);
  s.room.call(&s.topology, s.board, now);
  CHECK(s.heard == std::vector<std::pair<int, word>>{{0, word::go}, {1, word::go}});
  s.room.call(&s.topology, s.board, now);
  CHECK(s.heard.size() == 2);
  // The first counts at its engine by now: the same room, so nobody else goes.
  s.board.reserve(s.topology.models["m"].endpoints[0].slot, {1});
  s.room.leave(who[0]);
  s.room.call(&s.topology, s.board, now);
  CHECK(s.heard.size() == 2);
  // The second was given up, and so was one that still waited.
  s.room.leave(who[1]);
  s.room.leave(who[2]);
  s.room.call(&s.topology, s.board, now);
  REQUIRE(s.heard.size() == 3);
  CHECK(s.heard[2] == std::pair{3, word::go});
  CHECK(s.room.length() == 2);
}

TEST_CASE("a full room: the lower priority makes room and hears of it") {
  room_setup s(1);
  REQUIRE(s.enter());
  CHECK_FALSE(s.enter());
  CHECK(s.enter(1));
  CHECK(s.heard == std::vector<std::pair<int, word>>{{0, word::make_room}});
  CHECK(s.room.length() == 1);
}

TEST_CASE("who cannot go where there is room waits on; when no engine is left all are told") {
  room_setup s;
  const std::string_view failed[] = {"e0"};
  s.enter(5, {{}, failed});
  s.enter();
  s.measure(0, 3);
  s.room.call(&s.topology, s.board, now);
  CHECK(s.heard == std::vector<std::pair<int, word>>{{1, word::go}});
  s.room.call(nullptr, s.board, now);
  CHECK(s.heard.size() == 2);
  CHECK(s.room.empty());
}

TEST_CASE("a shed request is answered with 429 at once, with 503 after a wait") {
  const auto at_once = all_saturated("m", "because", {1'200ms, false});
  CHECK(at_once.status == 429);
  CHECK(at_once.retry_after == 2s);
  CHECK(at_once.message.find("because") != std::string::npos);
  CHECK(all_saturated("m", "because", {1'000ms, true}).status == 503);
}

}  // namespace
}  // namespace infernex::gateway
