#pragma once

// Replays of one trace at a given rate, several at once.

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "actors/simulator/replay_world.hpp"

namespace infernex::bench {

/// A made-up trace is there to see that it runs.
inline double minutes() {
  const char* given = std::getenv("MINUTES");
  const auto value = given ? std::atof(given) : 0;
  if (value > 0) return value;
  return std::getenv("TRACE") ? 20 : 1;
}

/// The trace, repeated to last so many minutes at the rate; the first tenth is warm-up.
inline simulator::replay_summary play(const simulator::replay_settings& settings, const simulator::trace& requests,
                                      const simulator::replay_policy_maker& policy, double rate, double for_minutes) {
  const auto once = simulator::repeated_trace(requests).requests_per_second();
  const auto times = std::ceil(for_minutes * 60 * rate / static_cast<double>(requests.size()));
  const simulator::repeated_trace all(requests, static_cast<std::uint32_t>(times), rate / once);
  simulator::replay_statistics seen({.warm_up_ms = all.span_ms() / 10});
  simulator::replay_world world(settings, all, policy, seen);
  world.run();
  return seen.summary();
}

/// Runs all jobs, as many at once as there are cores.
inline void run_all(const std::vector<std::function<void()>>& jobs) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (auto i = next++; i < jobs.size(); i = next++) jobs[i]();
  };
  std::vector<std::thread> workers;
  for (auto left = std::max(1U, std::thread::hardware_concurrency()); left > 1; --left) workers.emplace_back(work);
  work();
  for (auto& each : workers) each.join();
}

inline double mean(const std::optional<simulator::latency_summary>& of) { return of ? of->mean : 0; }
inline double p99(const std::optional<simulator::latency_summary>& of) { return of ? of->p99 : 0; }

}  // namespace infernex::bench
