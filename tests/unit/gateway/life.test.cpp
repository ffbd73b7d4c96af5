#include "gateway/life.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::gateway;
using namespace std::chrono_literals;

namespace {

const clock_point start{1000s};

life_events placed(const char* model, const char* instance, const char* id, int prefill, int blocks) {
  life_events e;
  e.changes.push_back({model, instance, 1, prefill, blocks, id});
  return e;
}

life_events left(const char* model, const char* instance, int prefill, int blocks) {
  life_events e;
  e.changes.push_back({model, instance, -1, -prefill, -blocks, {}});
  return e;
}

life_events ended(const char* model, const char* id) {
  life_events e;
  auto& f = e.finished.emplace_back();
  f.model = model;
  f.record.request_id = id;
  return e;
}

}  // namespace

TEST_CASE("totals are absolute, records appear once") {
  life l("gateway/a", 77);
  CHECK_FALSE(l.changed());
  CHECK(l.take(true, start).empty());
  l.apply(placed("m", "e0", "r1", 100, 7), start);
  l.apply(placed("m", "e0", "r2", 50, 4), start);
  CHECK(l.changed());
  auto first = l.take(false, start);
  REQUIRE(first.size() == 1);
  CHECK(first[0].model == "m");
  CHECK(first[0].origin->id == "gateway/a");
  CHECK(first[0].origin->epoch == 77);
  CHECK(first[0].origin->sequence == 1);
  CHECK(first[0].started == std::vector<std::string>{"r1", "r2"});
  REQUIRE(first[0].in_flight.size() == 1);
  CHECK(first[0].in_flight[0]->requests == 2);
  CHECK(first[0].in_flight[0]->prefill_tokens == 150);
  CHECK(first[0].in_flight[0]->blocks == 11);
  CHECK_FALSE(l.changed());
  CHECK(l.take(false, start).empty());

  life_events token;
  token.changes.push_back({"m", "e0", 0, -100, 0, {}});
  l.apply(token, start);
  l.apply(left("m", "e0", 0, 7), start);
  l.apply(ended("m", "r1"), start);
  auto second = l.take(false, start);
  REQUIRE(second.size() == 1);
  CHECK(second[0].origin->sequence == 2);
  CHECK(second[0].started.empty());
  REQUIRE(second[0].finished.size() == 1);
  CHECK(second[0].finished[0]->request_id == "r1");
  CHECK(second[0].in_flight[0]->requests == 1);
  CHECK(second[0].in_flight[0]->prefill_tokens == 50);
  CHECK(second[0].in_flight[0]->blocks == 4);
}

TEST_CASE("an idle engine is listed with zeros for a while, then left out") {
  life l("g", 1);
  l.apply(placed("m", "e0", "r", 1, 1), start);
  l.apply(left("m", "e0", 1, 1), start + 1s);
  auto now = l.take(true, start + 2s);
  REQUIRE(now.size() == 1);
  REQUIRE(now[0].in_flight.size() == 1);
  CHECK(now[0].in_flight[0]->requests == 0);
  CHECK(l.take(true, start + 12s).empty());
}

TEST_CASE("the last messages leave nothing in flight") {
  life l("g", 1);
  l.apply(placed("m", "e0", "r", 10, 1), start);
  l.take(false, start);
  l.end_all(start + 1s);
  const auto last = l.take(false, start + 1s);
  REQUIRE(last.size() == 1);
  REQUIRE(last[0].in_flight.size() == 1);
  CHECK(last[0].in_flight[0]->requests == 0);
  CHECK(last[0].in_flight[0]->prefill_tokens == 0);
}

TEST_CASE("a heartbeat repeats totals of every model, each with its own sequence") {
  life l("g", 1);
  l.apply(placed("a", "e0", "r1", 1, 1), start);
  l.take(false, start);
  l.apply(placed("b", "e1", "r2", 1, 1), start);
  const auto all = l.take(true, start);
  REQUIRE(all.size() == 2);
  CHECK(all[0].model == "a");
  CHECK(all[0].origin->sequence == 2);
  CHECK(all[0].started.empty());
  CHECK(all[1].model == "b");
  CHECK(all[1].origin->sequence == 1);
}

TEST_CASE("bounds drop and count, and totals never fall below zero") {
  life::limits tight;
  tight.max_models = 1;
  tight.max_instances = 1;
  tight.max_records = 1;
  life l("g", 1, tight);
  l.apply(placed("a", "e0", "r1", 1, 1), start);
  l.apply(placed("a", "e0", "r2", 1, 1), start);  // id over the bound, total counts
  CHECK(l.dropped() == 1);
  l.apply(placed("a", "e1", "r3", 1, 1), start);
  l.apply(placed("b", "e0", "r4", 1, 1), start);
  CHECK(l.dropped() == 3);
  l.apply(ended("a", "r1"), start);
  l.apply(ended("a", "r2"), start);
  CHECK(l.dropped() == 4);
  l.apply(left("a", "e0", 5, 5), start);
  const auto messages = l.take(false, start);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].started == std::vector<std::string>{"r1"});
  REQUIRE(messages[0].in_flight.size() == 1);
  CHECK(messages[0].in_flight[0]->requests == 1);
  CHECK(messages[0].in_flight[0]->prefill_tokens == 0);
}

TEST_CASE("a message that could not be sent gives back what is said only once, ahead of what has come since") {
  life::limits bounds;
  bounds.max_records = 3;
  life l("g", 1, bounds);
  l.apply(placed("m", "e0", "r1", 1, 1), start);
  l.apply(placed("m", "e0", "r2", 1, 1), start);
  l.apply(ended("m", "r0"), start);
  auto unsent = l.take(false, start);
  REQUIRE(unsent.size() == 1);
  l.apply(placed("m", "e0", "r3", 1, 1), start);
  l.apply(ended("m", "r1"), start);
  l.put_back(std::move(unsent[0]));
  CHECK(l.changed());
  const auto next = l.take(false, start);
  REQUIRE(next.size() == 1);
  CHECK(next[0].started == std::vector<std::string>{"r1", "r2", "r3"});
  REQUIRE(next[0].finished.size() == 2);
  CHECK(next[0].finished[0]->request_id == "r0");
  CHECK(next[0].finished[1]->request_id == "r1");
  CHECK(next[0].in_flight[0]->requests == 3);
  CHECK(next[0].origin->sequence == 2);
  CHECK(l.dropped() == 0);
  // Only so many, and the rest is counted.
  l.apply(placed("m", "e0", "r4", 1, 1), start);
  auto many = l.take(false, start);
  many[0].started = {"a", "b", "c"};
  l.apply(placed("m", "e0", "r5", 1, 1), start);
  l.put_back(std::move(many[0]));
  CHECK(l.dropped() == 1);
  CHECK(l.take(false, start)[0].started == std::vector<std::string>{"a", "b", "r5"});
}

TEST_CASE("a message that is too large loses its records, counted, and keeps its totals") {
  life l("g", 1);
  l.apply(placed("m", "e0", "r1", 10, 1), start);
  l.apply(ended("m", "r0"), start);
  l.apply(ended("m", "r2"), start);
  auto message = std::move(l.take(false, start)[0]);
  l.drop_records(message);
  CHECK(l.dropped() == 3);
  CHECK(message.started.empty());
  CHECK(message.finished.empty());
  REQUIRE(message.in_flight.size() == 1);
  CHECK(message.in_flight[0]->requests == 1);
}
