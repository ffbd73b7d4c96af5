#include "actors/router/speed_book.hpp"

#include <doctest/doctest.h>

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

TEST_CASE("a fading line: nothing before five measurements, then base and slope") {
  fading_line line;
  for (const double x : {1'000.0, 2'000.0, 3'000.0, 4'000.0}) line.add(x, 20 + 0.05 * x);
  CHECK_FALSE(line.fit());
  line.add(5'000, 20 + 0.05 * 5'000);
  REQUIRE(line.fit());
  CHECK(line.fit()->base == doctest::Approx(20));
  CHECK(line.fit()->slope == doctest::Approx(0.05));
}

TEST_CASE("a fading line is never negative, and measurements at one point tell the mean") {
  fading_line same, falling, below;
  for (int i = 0; i < 8; ++i) {
    same.add(100, 7);
    falling.add(i, 10.0 - i);
    below.add(100.0 + i, 2.0 * (100 + i) - 150);
  }
  CHECK(same.fit()->base == doctest::Approx(7));
  CHECK(same.fit()->slope == 0);
  CHECK(falling.fit()->slope == 0);
  CHECK(falling.fit()->base > 0);
  CHECK(below.fit()->base == 0);
  CHECK(below.fit()->slope > 0);
}

TEST_CASE("a fading line follows a change") {
  fading_line line(0.9);
  for (int i = 0; i < 100; ++i) line.add(i % 10, 5.0 * (i % 10));
  for (int i = 0; i < 100; ++i) line.add(i % 10, 9.0 * (i % 10) + 1);
  CHECK(line.fit()->slope == doctest::Approx(9).epsilon(0.01));
}

TEST_CASE("what was learned is on the board, for the slot's present owner only") {
  load_board board(4);
  speed_book speeds(board);
  const auto slot = *board.acquire();
  board.set_remote(slot, {3, 5'000, 40});
  const auto met = conditions_of(board, slot, {1, 1'000, 10}, now);
  CHECK(met.tokens_ahead == 6'000);
  CHECK(met.blocks == 50);
  for (std::uint32_t i = 1; i <= 5; ++i) speeds.learn({slot, i * 1'000, i * 10}, {10.0 + i * 50, 99 * (5.0 + i), 100});
  const auto speed = board.read(slot, now).speed;
  CHECK(speed.ttft_base_ms.value() == doctest::Approx(10));
  CHECK(speed.prefill_ms_a_token.value() == doctest::Approx(0.05));
  CHECK(speed.tpot_base_ms.value() == doctest::Approx(5));
  CHECK(speed.tpot_ms_a_block.value() == doctest::Approx(0.1));
  CHECK(speed.output_tokens.value() == doctest::Approx(100));
  CHECK(speed.ttft_ms.value() > 60);
  board.release(slot);
  const auto next = *board.acquire();
  CHECK_FALSE(board.read(next, now).speed.ttft_ms);
  speeds.learn({slot, 1, 1}, {1.0, 2.0, 2});  // of the owner before
  CHECK_FALSE(board.read(next, now).speed.ttft_ms);
}

TEST_CASE("prompts of one length teach no slope, and what is late of an owner before harms nobody") {
  load_board board(4);
  speed_book speeds(board);
  const auto first = *board.acquire();
  for (int i = 0; i < 6; ++i) speeds.learn({first, 1'000, 10}, {50.0, 99.0, 100});
  CHECK(board.read(first, now).speed.ttft_ms);
  CHECK_FALSE(board.read(first, now).speed.prefill_ms_a_token);
  board.release(first);
  const auto second = *board.acquire();
  REQUIRE(second.index == first.index);
  for (std::uint32_t i = 1; i <= 5; ++i) speeds.learn({second, i * 1'000, 10}, {i * 50.0, 99.0, 100});
  speeds.learn({first, 9'000, 10}, {1.0, 99.0, 100});
  speeds.learn({second, 6'000, 10}, {300.0, 99.0, 100});
  CHECK(board.read(second, now).speed.prefill_ms_a_token.value() == doctest::Approx(0.05));
}

TEST_CASE("conditions of routed requests wait for their result, in bounds") {
  load_board board(4);
  speed_book speeds(board, {2, 1'000ms, 4});
  const auto slot = *board.acquire();
  speeds.finished("nobody's", speed_result{1.0, 1.0, 1});
  CHECK_FALSE(board.read(slot, now).speed.ttft_ms);
  speeds.routed("a", {slot, 100, 1}, now);
  speeds.routed("b", {slot, 100, 1}, now);
  speeds.routed("c", {slot, 100, 1}, now);  // "a" is let go
  CHECK(speeds.open() == 2);
  speeds.finished("a", speed_result{1.0, 1.0, 1});
  CHECK_FALSE(board.read(slot, now).speed.ttft_ms);
  speeds.finished("b", std::nullopt);  // was not answered
  CHECK_FALSE(board.read(slot, now).speed.ttft_ms);
  speeds.finished("c", speed_result{25.0, 15.0, 1});
  CHECK(board.read(slot, now).speed.ttft_ms.value() == doctest::Approx(25));
  CHECK_FALSE(board.read(slot, now).speed.tpot_ms);  // one token has no time between tokens
  speeds.routed("d", {slot, 100, 1}, now);
  speeds.expire(now + 2s);
  CHECK(speeds.open() == 0);
}

TEST_CASE("only completed requests teach") {
  fb::FinishedT record;
  record.ttft_ms = 30;
  record.duration_ms = 90;
  record.completion_tokens = 4;
  REQUIRE(speed_result_of(record));
  CHECK(speed_result_of(record)->decode_ms == 60);
  CHECK(speed_result_of(record)->ttft_ms == 30);
  record.outcome = fb::Outcome::EngineFailed;
  CHECK_FALSE(speed_result_of(record));
}

}  // namespace
}  // namespace infernex::router
