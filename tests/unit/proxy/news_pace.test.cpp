#include "actors/proxy/news_pace.hpp"

#include <doctest/doctest.h>

using infernex::proxy::news_pace;
using namespace std::chrono_literals;

TEST_CASE("a storm of changes is a message each 100 ms; the last of them is not lost; quiet is one a second") {
  news_pace pace;
  const news_pace::point start{1h};
  CHECK(pace.on_change(start));
  int sent = 0;
  for (auto now = start + 1ms; now < start + 95ms; now += 1ms) sent += pace.on_change(now);
  CHECK(sent == 0);
  CHECK_FALSE(pace.on_time(start + 99ms));
  CHECK(pace.on_time(start + 100ms));
  CHECK_FALSE(pace.on_time(start + 200ms));
  CHECK(pace.on_change(start + 250ms));
  for (auto now = start + 300ms; now < start + 1250ms; now += 100ms) CHECK_FALSE(pace.on_time(now));
  CHECK(pace.on_time(start + 1250ms));
}
