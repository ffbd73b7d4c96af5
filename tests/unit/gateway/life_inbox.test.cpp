#include "gateway/life_inbox.hpp"

#include <thread>

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::gateway;

namespace {

life_events change(const char* instance, std::int32_t requests, const char* started = "") {
  life_events e;
  e.changes.push_back({"m", instance, requests, 10 * requests, requests, started});
  return e;
}

}  // namespace

TEST_CASE("what is put comes out once, in order, and only the first putter wakes the taker") {
  life_inbox box;
  CHECK(box.take().empty());
  CHECK(box.put(change("e0", 1, "r1")));
  CHECK_FALSE(box.put(change("e1", 1, "r2")));
  life_events more;
  more.finished.emplace_back().record.request_id = "r1";
  more.routed.push_back({"r2", "m", "e1", fb::KeyMode::Token, {1, 2}});
  CHECK_FALSE(box.put(std::move(more)));
  const auto all = box.take();
  REQUIRE(all.changes.size() == 2);
  CHECK(all.changes[0].started == "r1");
  CHECK(all.changes[1].instance == "e1");
  REQUIRE(all.finished.size() == 1);
  REQUIRE(all.routed.size() == 1);
  CHECK(all.routed[0].keys.size() == 2);
  CHECK(box.take().empty());
  CHECK(box.put(change("e0", 1)));
}

TEST_CASE("over the bound totals stay exact, single records are dropped and counted") {
  life_inbox box({10, 2, 5});
  for (int i = 0; i < 100; ++i) {
    box.put(change(i % 2 ? "e0" : "e1", 1, "r"));
    if (i % 4 == 0) box.put(change("e0", -1));
  }
  life_events records;
  records.finished.resize(5);
  records.routed.resize(3);
  for (auto& r : records.routed) r.keys = {1, 2, 3};
  box.put(std::move(records));
  const auto all = box.take();
  CHECK(all.changes.size() <= 10);
  std::int64_t requests[2] = {0, 0};
  std::int64_t tokens = 0;
  std::size_t started = 0;
  for (const auto& c : all.changes) {
    requests[c.instance == "e1"] += c.requests;
    tokens += c.prefill_tokens;
    started += !c.started.empty();
  }
  CHECK(requests[0] == 50 - 25);
  CHECK(requests[1] == 50);
  CHECK(tokens == 750);
  CHECK(all.finished.size() == 2);
  CHECK(all.routed.size() == 1);
  CHECK(box.dropped() == (100 - started) + 3 + 2);
}

TEST_CASE("many threads put, one takes, nothing is lost") {
  life_inbox box;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&box] {
      for (int i = 0; i < 2'000; ++i) box.put(change("e0", i % 2 ? 1 : 2));
    });
  std::int64_t sum = 0;
  const auto take = [&] {
    for (const auto& c : box.take().changes) sum += c.requests;
  };
  while (sum < 3 * 3'000) take();
  for (auto& t : threads) t.join();
  CHECK(box.take().empty());
  CHECK(sum == 3 * 3'000);
}
