#include "actors/router/waiting_line.hpp"

#include <doctest/doctest.h>

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
constexpr clock_point now{1'000s};

bool anyone(waiting_line::ticket) { return true; }

waiting_line::request of(std::string tenant, std::int32_t priority = 0, std::uint64_t cost = 1) {
  return {"m", std::move(tenant), priority, cost};
}

TEST_CASE("higher priorities first, then arrival; each model has a line of its own") {
  waiting_line line({});
  const auto low = line.admit(of("a", -5), now).taken;
  const auto first = line.admit(of("a"), now).taken;
  const auto second = line.admit(of("a"), now).taken;
  const auto high = line.admit(of("a", 3), now).taken;
  auto elsewhere = of("a", 9);
  elsewhere.model = "n";
  const auto other = line.admit(elsewhere, now).taken;
  REQUIRE((low && first && second && high && other));
  CHECK(line.position(*high) == 1);
  CHECK(line.position(*first) == 2);
  CHECK(line.position(*second) == 3);
  CHECK(line.position(*low) == 4);
  CHECK(line.models() == std::vector<std::string>{"m", "n"});
  for (const auto& expected : {high, first, second, low}) CHECK(line.next("m", anyone) == expected);
  CHECK_FALSE(line.next("m", anyone));
  CHECK_FALSE(line.waits_for("m"));
  CHECK(line.waits_for("n"));
  CHECK(line.next("n", anyone) == other);
  CHECK(line.size() == 0);
}

TEST_CASE("a tenant's own requests go by deadline, those without one last") {
  waiting_line line({});
  auto due = [](clock_point at) {
    auto r = of("a");
    r.due = at;
    return r;
  };
  const auto none = line.admit(of("a"), now).taken;
  const auto late = line.admit(due(now + 9s), now).taken;
  const auto soon = line.admit(due(now + 1s), now).taken;
  const auto same = line.admit(due(now + 1s), now).taken;
  for (const auto& expected : {soon, same, late, none}) CHECK(line.next("m", anyone) == expected);
}

TEST_CASE("over a thousand requests tenants get equal shares of tokens, however many they send and of what size") {
  waiting_line line({5'000, 1h});
  std::map<waiting_line::ticket, std::pair<char, std::uint64_t>> sent;
  const auto send = [&](char tenant, std::uint64_t cost) {
    sent[*line.admit(of(std::string(1, tenant), 0, cost), now).taken] = {tenant, cost};
  };
  for (int i = 0; i < 2'000; ++i) send('a', 100);
  for (int i = 0; i < 500; ++i) send('b', 400);
  std::map<char, std::uint64_t> served;
  for (int i = 0; i < 1'000; ++i) {
    const auto got = line.next("m", anyone);
    REQUIRE(got);
    served[sent[*got].first] += sent[*got].second;
    const auto gap = served['a'] > served['b'] ? served['a'] - served['b'] : served['b'] - served['a'];
    CHECK(gap <= 400);
  }
  CHECK(served['a'] + served['b'] == 160'000);
}

TEST_CASE("absence earns nothing: who comes back is level with those who waited") {
  waiting_line line({});
  for (int i = 0; i < 100; ++i) line.admit(of("busy"), now);
  for (int i = 0; i < 50; ++i) line.next("m", anyone);
  std::vector<waiting_line::ticket> back;
  for (int i = 0; i < 10; ++i) back.push_back(*line.admit(of("back"), now).taken);
  int turns = 0;
  for (int i = 0; i < 10; ++i)
    if (std::find(back.begin(), back.end(), *line.next("m", anyone)) != back.end()) ++turns;
  CHECK(turns == 5);
  // And who was served more than others pays for it, though it was away for a moment.
  waiting_line other({});
  other.admit(of("greedy", 0, 1'000), now);
  const auto patient = other.admit(of("patient", 0, 10), now).taken;
  other.admit(of("patient", 0, 10), now);
  const auto greedy_was_first = other.next("m", anyone) != patient;
  CHECK(greedy_was_first);
  other.admit(of("greedy"), now);
  CHECK(other.next("m", anyone) == patient);
}

TEST_CASE("a full line sheds the lowest priority, of it the newest of who has most, which may be the newcomer") {
  waiting_line line({4});
  const auto a1 = line.admit(of("a"), now).taken;
  const auto a2 = line.admit(of("a"), now).taken;
  const auto a3 = line.admit(of("a"), now).taken;
  const auto b1 = line.admit(of("b"), now).taken;
  CHECK_FALSE(line.admit(of("a"), now).taken);
  CHECK_FALSE(line.admit(of("b", -1), now).taken);
  auto got = line.admit(of("b"), now);  // two of b against three of a
  CHECK(got.taken);
  CHECK(got.evicted == a3);
  CHECK_FALSE(line.admit(of("b"), now).taken);  // it would be three of b
  got = line.admit(of("a", 1), now);
  CHECK(got.taken);
  CHECK((got.evicted == a2 || got.evicted.value_or(0) > *b1));
  CHECK(line.size() == 4);
  CHECK(line.leave(*a1));
  CHECK_FALSE(line.leave(*a1));
  CHECK(line.position(*a1) == 0);
  CHECK(line.size() == 3);
}

TEST_CASE("nobody waits longer than the line's bound, nor past a deadline of its own") {
  waiting_line line({10, 30s});
  auto hurried = of("a");
  hurried.until = now + 2s;
  auto patient = of("a");
  patient.until = now + 2min;
  const auto first = line.admit(hurried, now).taken;
  const auto second = line.admit(patient, now).taken;
  CHECK(line.expire(now + 1'999ms).empty());
  CHECK(line.expire(now + 2s) == std::vector{*first});
  CHECK(line.expire(now + 29s).empty());
  CHECK(line.expire(now + 30s) == std::vector{*second});
  CHECK(line.size() == 0);
  CHECK_FALSE(line.waits_for("m"));
}

TEST_CASE("who cannot go does not block who can; the looks are bounded, and tenants' counts") {
  waiting_line line({1'000, 1h, 3, 10});
  const auto stuck = line.admit(of("a", 5), now).taken;
  const auto free = line.admit(of("b"), now).taken;
  CHECK(line.next("m", [&](auto who) { return who != *stuck; }) == free);
  CHECK(line.size() == 1);
  for (int i = 0; i < 100; ++i) line.admit(of("t" + std::to_string(i)), now);
  int looks = 0;
  CHECK_FALSE(line.next("m", [&](auto) { return ++looks == 0; }));
  CHECK(looks == 10);
  while (line.next("m", anyone)) {
  }
  CHECK(line.size() == 0);
}

}  // namespace
}  // namespace infernex::router
