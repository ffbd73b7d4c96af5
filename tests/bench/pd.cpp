// link: infernex_simulator_core
//
// Eight engines on one trace (TRACE=FILE), in virtual time: all of them doing whole requests, and every split into
// prefill and decode engines, at RATE requests a second (10) for MINUTES (20). A table of what each policy is good for
// at 4P4D and at its best split (the most tokens within the limits: a first token in time as in `bench-routing`, then
// the least mean end-to-end time). Writes build/bench/pd.json.

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "actors/simulator/replay_router.hpp"
#include "tests/bench/support/replay_fleet.hpp"
#include "tests/bench/support/replay_runs.hpp"
#include "tests/bench/support/report.hpp"

namespace {

using namespace infernex;
using namespace infernex::simulator;

constexpr std::size_t engines = 8;

struct run {
  std::string policy;
  /// Prefill engines; 0: all engines do whole requests.
  std::size_t prefill = 0;
  replay_summary seen;
  std::string fleet() const {
    return prefill == 0 ? std::to_string(engines) + " aggregated"
                        : std::to_string(prefill) + "P" + std::to_string(engines - prefill) + "D";
  }
};

bool better(const replay_summary& a, const replay_summary& b) {
  const auto in_time = [](const replay_summary& s) { return std::round(s.goodput.value_or(0) * 1'000); };
  if (in_time(a) != in_time(b)) return in_time(a) > in_time(b);
  return bench::mean(a.end_to_end) < bench::mean(b.end_to_end);
}

std::string json_of(const run& one, double rate) {
  std::array<char, 500> text{};
  std::snprintf(
      text.data(), text.size(),
      "{\"policy\": \"%s\", \"fleet\": \"%s\", \"rate\": %.2f, \"ttft_mean_ms\": %.1f, \"ttft_p99_ms\": %.1f, "
      "\"itl_mean_ms\": %.2f, \"itl_p99_ms\": %.1f, \"e2e_mean_ms\": %.0f, \"goodput\": %.4f}",
      one.policy.c_str(), one.fleet().c_str(), rate, bench::mean(one.seen.ttft), bench::p99(one.seen.ttft),
      bench::mean(one.seen.inter_token), bench::p99(one.seen.inter_token), bench::mean(one.seen.end_to_end),
      one.seen.goodput.value_or(0));
  return text.data();
}

void tell(const std::string& what, const run& one) {
  std::printf("| %s | %s | %s | %.0f | %.0f | %.1f | %.1f | %.1f | %.3f |\n", one.policy.c_str(), one.fleet().c_str(),
              what.c_str(), bench::mean(one.seen.ttft), bench::p99(one.seen.ttft), bench::mean(one.seen.inter_token),
              bench::p99(one.seen.inter_token), bench::mean(one.seen.end_to_end) / 1e3, one.seen.goodput.value_or(0));
}

}  // namespace

int main(int argc, char** argv) {
  const char* named = std::getenv("TRACE");
  const char* given = std::getenv("RATE");
  const double rate = given ? std::atof(given) : 10;
  const auto requests = bench::replay_trace(named ? named : "");
  std::vector<run> runs{{"infernex", 0, {}}, {"kv-aware", 0, {}}, {"random", 0, {}}};
  const std::array apart{"infernex-pd", "pd-kv-aware", "pd-bucket", "random-pd"};
  for (const auto* policy : apart)
    for (std::size_t prefill = 1; prefill < engines; ++prefill) runs.push_back({policy, prefill, {}});
  std::vector<std::function<void()>> jobs;
  for (auto& one : runs)
    jobs.emplace_back([&] {
      replay_settings settings;
      settings.engines.assign(engines, bench::replay_engine_of(requests.block_tokens()));
      for (std::size_t i = 0; one.prefill != 0 && i < engines; ++i)
        settings.engines[i].role = i < one.prefill ? replay_role::prefill : replay_role::decode;
      router::policy how;
      how.strategy = one.policy;
      one.seen = bench::play(settings, requests, router_policy(how), rate, bench::minutes());
    });
  bench::run_all(jobs);

  std::printf(
      "\n%.2f requests/s\n\n| policy | engines | | TTFT mean ms | TTFT p99 ms | ITL mean ms | ITL p99 ms | "
      "end to end s | goodput |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n",
      rate);
  for (const auto& one : runs)
    if (one.prefill == 0) tell("", one);
  for (const auto* policy : apart) {
    const run* best = nullptr;
    const run* even = nullptr;
    for (const auto& one : runs) {
      if (one.policy != policy) continue;
      if (!best || better(one.seen, best->seen)) best = &one;
      if (one.prefill == engines / 2) even = &one;
    }
    tell("4P4D", *even);
    tell("best split", *best);
  }
  std::string rows;
  for (const auto& one : runs) rows += (rows.empty() ? "\n    " : ",\n    ") + json_of(one, rate);
  const auto folder = bench::report_folder(argc, argv);
  std::filesystem::create_directories(folder);
  std::ofstream out(folder / "pd.json");
  out << "{\"runs\": [" << rows << "\n  ]}\n";
  return out.good() ? 0 : 1;
}
