#include "actors/router/load_board.hpp"

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "actors/router/reservations.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{5'000s};

TEST_CASE("what is reported is read, with its age; what was not measured is absent") {
  load_board board(2, 10s);
  const auto slot = board.acquire();
  REQUIRE(slot);
  auto read = board.read(*slot, now);
  CHECK_FALSE(read.running);
  CHECK_FALSE(read.waiting);
  CHECK_FALSE(read.kv_usage);
  CHECK_FALSE(read.age);
  CHECK(read.in_flight == 0);
  board.report(*slot, 3, std::nullopt, 0.25, now);
  read = board.read(*slot, now + 1500ms);
  CHECK(read.running == 3);
  CHECK_FALSE(read.waiting);
  CHECK(read.kv_usage == 0.25);
  CHECK(read.age == 1500ms);
  board.report(*slot, std::nullopt, 0, std::nullopt, now + 2s);
  read = board.read(*slot, now + 2s);
  CHECK_FALSE(read.running);
  CHECK(read.waiting == 0);
  CHECK_FALSE(read.kv_usage);
}

TEST_CASE("a report older than the limit is as good as none; the age is still told") {
  load_board board(1, 10s);
  const auto slot = *board.acquire();
  board.report(slot, 1, 2, 0.5, now);
  CHECK(board.read(slot, now + 10s).waiting == 2);
  const auto read = board.read(slot, now + 10'001ms);
  CHECK_FALSE(read.waiting);
  CHECK(read.age == 10'001ms);
  // A report stamped a little after the reader's clock is fresh, not ancient.
  CHECK(board.read(slot, now - 5ms).age == 0ms);
}

TEST_CASE("remote totals replace, reservations add up, and taking back never goes below nothing") {
  load_board board(1);
  const auto slot = *board.acquire();
  board.set_remote(slot, {4, 1'000});
  board.reserve(slot, {1, 200});
  board.reserve(slot, {1, 50});
  CHECK(board.read(slot, now).in_flight == 6);
  CHECK(board.read(slot, now).prefill_tokens == 1'250);
  board.set_remote(slot, {1, 10});
  board.unreserve(slot, {1, 200});
  CHECK(board.read(slot, now).in_flight == 2);
  CHECK(board.read(slot, now).prefill_tokens == 60);
  for (int i = 0; i < 3; ++i) board.unreserve(slot, {1, 50});
  CHECK(board.read(slot, now).in_flight == 1);
  CHECK(board.read(slot, now).prefill_tokens == 10);
}

TEST_CASE("slots are bounded, reused, and a stale reference does nothing to the successor") {
  load_board board(2);
  const auto a = *board.acquire();
  const auto b = *board.acquire();
  CHECK_FALSE(board.acquire());
  board.report(a, 9, 9, 0.9, now);
  board.reserve(a, {7, 700});
  board.release(a);
  board.release(a);  // once more does not free twice
  const auto c = *board.acquire();
  CHECK_FALSE(board.acquire());
  CHECK(c.index == a.index);
  CHECK(c.generation != a.generation);
  board.reserve(c, {1, 10});
  board.unreserve(a, {1, 10});
  board.set_remote(a, {50, 5});
  board.report(a, 1, 1, 0.1, now);
  CHECK(board.read(c, now).in_flight == 1);
  CHECK_FALSE(board.read(c, now).waiting);
  CHECK(board.read(a, now).in_flight == 0);
  CHECK_FALSE(board.read(a, now).age);
  const slot_ref nonsense{99, 1};
  board.reserve(nonsense, {1, 1});
  CHECK(board.read(nonsense, now).in_flight == 0);
  CHECK(board.read(b, now).in_flight == 0);
}

TEST_CASE("threads reserve and take back while the owner reports, releases and hands out slots") {
  load_board board(8);
  std::vector<slot_ref> slots;
  for (int i = 0; i < 8; ++i) slots.push_back(*board.acquire());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> rounds{0};
  std::vector<std::thread> threads;
  const auto first = slots;  // slot 0 lives through it all, the others are handed on
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!stop || rounds < 3'000) {
        const auto slot = first[random() % first.size()];
        board.reserve(slot, {1, 16});
        board.read(slot, now);
        board.unreserve(slot, {1, 16});
        ++rounds;
      }
    });
  std::mt19937 random(99);
  for (int i = 0; i < 3'000; ++i) {
    const auto at = 1 + random() % 7;
    board.release(slots[at]);
    slots[at] = *board.acquire();
    board.report(slots[at], 1, 1, 0.5, now);
    board.set_remote(slots[0], {2, 20});
  }
  stop = true;
  for (auto& t : threads) t.join();
  // Whoever was late has neither left anything with a successor nor taken anything from it.
  for (std::size_t i = 1; i < slots.size(); ++i) {
    CHECK(board.read(slots[i], now).in_flight == 0);
    CHECK(board.read(slots[i], now).prefill_tokens == 0);
  }
  CHECK(board.read(slots[0], now).in_flight == 2);
}

TEST_CASE("reservations: counted at once, taken back by id or by time, the oldest first over the bound") {
  load_board board(2);
  const auto slot = *board.acquire();
  const auto other = *board.acquire();
  reservation_book open(board, {10s, 3});
  open.reserve("a", slot, {1, 100}, now);
  open.reserve("b", slot, {1, 10}, now + 1s);
  CHECK(board.read(slot, now).in_flight == 2);
  open.drop("a");
  open.drop("a");
  open.drop("unheard of");
  CHECK(board.read(slot, now).in_flight == 1);
  CHECK(board.read(slot, now).prefill_tokens == 10);

  SUBCASE("the same id again moves it") {
    open.reserve("b", other, {1, 7}, now + 2s);
    CHECK(open.open() == 1);
    CHECK(board.read(slot, now).in_flight == 0);
    CHECK(board.read(other, now).in_flight == 1);
    open.expire(now + 11s);  // when the first one would have expired
    CHECK(board.read(other, now).in_flight == 1);
    open.expire(now + 12s);
    CHECK(board.read(other, now).in_flight == 0);
    CHECK(open.open() == 0);
  }
  SUBCASE("expiry") {
    open.expire(now + 11s - 1ms);
    CHECK(open.open() == 1);
    open.expire(now + 11s);
    CHECK(open.open() == 0);
    CHECK(board.read(slot, now).in_flight == 0);
    CHECK(open.shed() == 0);
  }
  SUBCASE("bound") {
    for (const auto* id : {"c", "d", "e", "f"}) open.reserve(id, other, {1, 1}, now + 2s);
    CHECK(open.open() == 3);
    CHECK(open.shed() == 2);  // b and c; a had been dropped
    CHECK(board.read(slot, now).in_flight == 0);
    CHECK(board.read(other, now).in_flight == 3);
  }
}

}  // namespace
}  // namespace infernex::router
