#include "actors/indexer/readiness.hpp"

#include <doctest/doctest.h>

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
const readiness::time_point start{};
constexpr readiness_settings settings{250ms, 2500ms, 30s};

TEST_CASE("a replica is ready when it has listened a while and every source is exact") {
  readiness ready(settings);
  CHECK_FALSE(ready.on_sources(0, 0, start));
  CHECK(ready.reason() == "the bus is not connected yet");
  ready.on_bus(true, start + 1s);
  CHECK_FALSE(ready.on_sources(0, 0, start + 1s));
  CHECK_FALSE(ready.on_sources(1, 0, start + 1100ms));
  CHECK_FALSE(ready.on_sources(2, 0, start + 1300ms));
  CHECK_FALSE(ready.on_sources(2, 0, start + 1549ms));
  CHECK(ready.reason() == "listening for announcements");
  CHECK_FALSE(ready.on_sources(2, 1, start + 1550ms));
  CHECK(ready.reason() == "1 of 2 sources not exact");
  CHECK(ready.on_sources(2, 0, start + 2s));
  CHECK(ready.caught_up());
  CHECK(ready.reason() == "all 2 sources exact after 1000 ms");
}

TEST_CASE("where nobody is heard of, it listens for a whole turn of announcements") {
  readiness ready(settings);
  ready.on_bus(true, start);
  CHECK_FALSE(ready.on_sources(0, 0, start + 2499ms));
  CHECK(ready.on_sources(0, 0, start + 2500ms));
}

TEST_CASE("it says so once, and what is lost later does not take it back") {
  readiness ready(settings);
  ready.on_bus(true, start);
  CHECK_FALSE(ready.on_sources(1, 0, start));
  REQUIRE(ready.on_sources(1, 0, start + 1s));
  CHECK_FALSE(ready.on_sources(2, 2, start + 2s));
  CHECK(ready.caught_up());
}

TEST_CASE("an engine that cannot be followed holds it up for a stated time only") {
  readiness ready(settings);
  ready.on_bus(true, start);
  CHECK_FALSE(ready.on_sources(3, 1, start + 29'999ms));
  CHECK(ready.on_sources(3, 1, start + 30s));
  CHECK(ready.reason() == "answering after 30000 ms with 1 of 3 sources not exact");
}

TEST_CASE("a bus that comes late takes nothing of the patience with sources") {
  readiness ready(settings);
  ready.on_bus(false, start);
  CHECK_FALSE(ready.on_sources(0, 0, start + 60s));
  ready.on_bus(true, start + 60s);
  CHECK_FALSE(ready.on_sources(1, 1, start + 61s));
  CHECK_FALSE(ready.on_sources(1, 1, start + 89'999ms));
  CHECK(ready.on_sources(1, 1, start + 90s));
}

TEST_CASE("a bus that was lost is listened to anew; without it nothing is ready") {
  readiness ready(settings);
  ready.on_bus(true, start);
  ready.on_bus(false, start + 100ms);
  CHECK_FALSE(ready.on_sources(1, 0, start + 20s));
  ready.on_bus(true, start + 20s);
  CHECK_FALSE(ready.on_sources(1, 0, start + 20'100ms));
  CHECK(ready.on_sources(1, 0, start + 20'350ms));
}

}  // namespace
}  // namespace infernex::indexer
