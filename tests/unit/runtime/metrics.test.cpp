#include "actors/runtime/metrics.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace infernex {

namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the same name and labels give the same object, other labels another one of the same family") {
  metrics_registry metrics;
  auto& a = metrics.counter("infernex_bus_messages_total", "Messages.", {{"lane", "rpc"}});
  auto& same = metrics.counter("infernex_bus_messages_total", "Other help.", {{"lane", "rpc"}});
  auto& other = metrics.counter("infernex_bus_messages_total", "Messages.", {{"lane", "stream"}});
  CHECK(&a == &same);
  CHECK(&a != &other);
  a.Increment(2);
  other.Increment();

  const auto page = metrics.render();
  CAPTURE(page);
  CHECK(occurrences(page, "# TYPE infernex_bus_messages_total counter\n") == 1);
  CHECK(occurrences(page, "# HELP infernex_bus_messages_total Messages.\n") == 1);
  CHECK(occurrences(page, "infernex_bus_messages_total{lane=\"rpc\"} 2\n") == 1);
  CHECK(occurrences(page, "infernex_bus_messages_total{lane=\"stream\"} 1\n") == 1);
}

TEST_CASE("a name belongs to one type") {
  metrics_registry metrics;
  metrics.counter("infernex_x_total", "X.");
  CHECK_THROWS_AS(metrics.gauge("infernex_x_total", "X."), std::invalid_argument);
  CHECK_THROWS_AS(metrics.counter("infernex x", "X."), std::invalid_argument);
  CHECK(occurrences(metrics.render(), "# TYPE infernex_x_total") == 1);
}

TEST_CASE("label values of strangers do not break the page") {
  metrics_registry metrics;
  metrics.gauge("infernex_engine_up", "Up.", {{"model", "a\"b\\c\nd"}}).Set(1);
  const auto page = metrics.render();
  CAPTURE(page);
  CHECK(page.find("infernex_engine_up{model=\"a\\\"b\\\\c\\nd\"} 1\n") != std::string::npos);
}

TEST_CASE("histograms count into their buckets") {
  metrics_registry metrics;
  auto& seconds = metrics.histogram("infernex_router_decision_seconds", "Time.", {0.1, 1});
  CHECK(&seconds == &metrics.histogram("infernex_router_decision_seconds", "Time.", {0.1, 1}));
  seconds.Observe(0.05);
  seconds.Observe(0.5);
  seconds.Observe(5);
  const auto page = metrics.render();
  CAPTURE(page);
  CHECK(occurrences(page, "infernex_router_decision_seconds_bucket{le=\"0.1\"} 1\n") == 1);
  CHECK(occurrences(page, "infernex_router_decision_seconds_bucket{le=\"1\"} 2\n") == 1);
  CHECK(occurrences(page, "infernex_router_decision_seconds_bucket{le=\"+Inf\"} 3\n") == 1);
  CHECK(occurrences(page, "infernex_router_decision_seconds_count 3\n") == 1);
}

TEST_CASE("the standard buckets rise and span what they say") {
  for (const auto* buckets : {&request_buckets(), &internal_buckets()}) {
    CHECK(std::is_sorted(buckets->begin(), buckets->end()));
    CHECK(std::adjacent_find(buckets->begin(), buckets->end()) == buckets->end());
  }
  CHECK(request_buckets().front() == 0.001);
  CHECK(request_buckets().back() == 120);
  CHECK(internal_buckets().front() == 0.00001);
  CHECK(internal_buckets().back() == 1);
}

TEST_CASE("threads that ask for one metric at once share it") {
  metrics_registry metrics;
  constexpr int threads = 4;
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&metrics] {
      for (int i = 0; i < 1000; ++i)
        metrics.counter("infernex_y_total", "Y.", {{"k", std::to_string(i % 8)}}).Increment();
    });
  for (auto& w : workers) w.join();
  for (int k = 0; k < 8; ++k)
    CHECK(metrics.counter("infernex_y_total", "Y.", {{"k", std::to_string(k)}}).Value() == 500);
}

}  // namespace infernex
