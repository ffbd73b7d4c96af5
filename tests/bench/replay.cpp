// link: infernex_simulator_core
//
// How fast traces are replayed: a million requests of a trace (repeated with shifted ids) on one core, through the same
// decide(), index and step model as a replay by hand. TRACE=FILE or the second argument names the trace.

#include <chrono>
#include <cstdlib>
#include <ctime>

#include "actors/simulator/replay_router.hpp"
#include "actors/simulator/replay_trace_file.hpp"
#include "actors/simulator/replay_world.hpp"
#include "tests/bench/support/replay_fleet.hpp"
#include "tests/bench/support/report.hpp"

namespace {

using namespace infernex;
using namespace infernex::simulator;

constexpr std::size_t wanted = 1'000'000;

void measure(const trace& requests, std::uint32_t engines, std::string_view how, double per_engine,
             bench::report& into) {
  const auto times = static_cast<std::uint32_t>((wanted + requests.size() - 1) / requests.size());
  const repeated_trace once(requests);
  const repeated_trace all(requests, times, per_engine * engines / once.requests_per_second());
  replay_settings settings;
  settings.engines.assign(engines, bench::replay_engine_of(requests.block_tokens()));
  router::policy policy;
  policy.strategy = how;
  replay_statistics seen;
  const auto start = std::chrono::steady_clock::now();
  const auto used = std::clock();
  replay_world world(settings, all, router_policy(policy), seen);
  world.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const auto cpu = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
  const auto summary = seen.summary();
  into.row(std::string(how), engines, all.size(), took.count(), cpu, cpu * 1e6 / static_cast<double>(all.size()),
           summary.output_tokens, summary.hit_share.value_or(0), summary.ttft ? summary.ttft->mean : 0.0,
           summary.ttft ? summary.ttft->p99 : 0.0);
}

}  // namespace

int main(int argc, char** argv) {
  const char* named = std::getenv("TRACE");
  const auto requests = bench::replay_trace(named ? named : "");
  bench::report report("replay", {"policy", "engines", "requests", "seconds", "cpu_seconds", "cpu_us_a_request",
                                  "tokens", "hit_share", "ttft_mean_ms", "ttft_p99_ms"});
  for (const auto engines : {8U, 64U})
    for (const auto how : {"round-robin", "least-load", "kv-aware"}) measure(requests, engines, how, 1.0, report);
  return report.publish(bench::report_folder(argc, argv)) ? 0 : 1;
}
