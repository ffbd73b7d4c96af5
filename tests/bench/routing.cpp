// link: infernex_simulator_core
//
// Every routing policy on one trace (TRACE=FILE), in virtual time: 8 and 64 engines that do all, and 4 prefill with 4
// decode engines, at 50, 70 and 90 % load. 100 % is the arrival rate at which the best policy's goodput (requests with
// a TTFT below 2 s + 2 x their own on an idle engine) falls to 95 %. The trace is repeated with shifted ids to last
// MINUTES (20) at the rate, its arrivals as they are or, with ARRIVALS=spread, without its bursts; the first tenth is
// warm-up; one seed for all. Beside them the oracle of replay_oracle.hpp. Writes build/bench/routing.json and, if it
// ran at full length on a real trace, docs/routing-benchmark.md.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "actors/simulator/replay_options.hpp"
#include "actors/simulator/replay_oracle.hpp"
#include "actors/simulator/replay_world.hpp"
#include "tests/bench/support/replay_fleet.hpp"
#include "tests/bench/support/replay_runs.hpp"
#include "tests/bench/support/report.hpp"
#include "tests/bench/support/routing_policies.hpp"

namespace {

using namespace infernex;
using namespace infernex::simulator;
using bench::mean;
using bench::minutes;
using bench::p99;
using bench::run_all;

constexpr std::array loads{0.5, 0.7, 0.9};
/// The least mean TTFT over these is the oracle's.
constexpr std::array oracle_weights{0.0, 0.5, 1.0, 2.0};

struct scenario {
  std::string name;
  std::vector<replay_engine_settings> engines;
  std::vector<bench::routing_policy> policies;
  double full_rate = 0;
  std::string best;  // the policy that bears it
};

struct outcome {
  std::string policy;
  double load = 0;
  replay_summary seen;
};

replay_summary play(const scenario& on, const trace& requests, const replay_policy_maker& policy, double rate,
                    std::uint32_t gateways = 1, std::uint32_t routers = 1, bool router_affinity = true) {
  replay_settings settings;
  settings.engines = on.engines;
  settings.gateways = gateways;
  settings.routers = routers;
  settings.router_affinity = router_affinity;
  return bench::play(settings, requests, policy, rate, minutes());
}

/// The highest rate that some policy bears. Each is tried at the best rate so far, and only who bears it at higher
/// ones.
void find_full_rate(scenario& of, const trace& requests) {
  of.full_rate = 0.25 * static_cast<double>(of.engines.size());
  // Later entries are the ones expected to do best: begin with them.
  for (auto policy = of.policies.rbegin(); policy != of.policies.rend(); ++policy) {
    const auto goodput = [&](double rate) { return play(of, requests, policy->make, rate).goodput.value_or(0); };
    const auto better = of.full_rate * 1.02;
    if (goodput(better) < full_load_goodput) continue;
    of.full_rate = full_rate(goodput, better).value_or(better);
    of.best = policy->name;
  }
  std::cerr << of.name << ": 100 % is " << of.full_rate << " requests/s, borne by " << of.best << '\n';
}

std::vector<scenario> scenarios(std::uint32_t block) {
  std::vector<scenario> all(3);
  all[0] = {.name = "aggregated-8", .engines = {8, bench::replay_engine_of(block)}};
  all[1] = {.name = "aggregated-64", .engines = {64, bench::replay_engine_of(block)}};
  all[2] = {.name = "pd-4p4d", .engines = {8, bench::replay_engine_of(block)}};
  for (std::size_t i = 0; i < 8; ++i) all[2].engines[i].role = i < 4 ? replay_role::prefill : replay_role::decode;
  for (auto& each : all)
    for (auto& policy : bench::routing_policies())
      if (each.engines[0].role == replay_role::aggregated ? policy.aggregated : policy.apart)
        each.policies.push_back(std::move(policy));
  return all;
}

/// Every policy at one load, the best oracle last.
std::vector<outcome> compare(const scenario& on, const trace& requests, double load) {
  const auto rate = load * on.full_rate;
  std::vector<outcome> all(on.policies.size() + oracle_weights.size());
  std::vector<std::function<void()>> jobs;
  // The oracles first: they take longest.
  for (auto i = all.size(); i-- > 0;) {
    jobs.emplace_back([&, i] {
      const bool oracle = i >= on.policies.size();
      const auto policy = oracle ? oracle_policy(oracle_weights[i - on.policies.size()]) : on.policies[i].make;
      all[i] = {oracle ? "oracle" : on.policies[i].name, load, play(on, requests, policy, rate)};
    });
  }
  run_all(jobs);
  const auto first_oracle = all.begin() + static_cast<std::ptrdiff_t>(on.policies.size());
  std::iter_swap(first_oracle, std::min_element(first_oracle, all.end(), [](const auto& a, const auto& b) {
                   return mean(a.seen.ttft) < mean(b.seen.ttft);
                 }));
  all.resize(on.policies.size() + 1);
  return all;
}

std::string figures_json(const replay_summary& of) {
  std::array<char, 400> text{};
  std::snprintf(
      text.data(), text.size(),
      "{\"ttft_mean_ms\": %.3f, \"ttft_p50_ms\": %.3f, \"ttft_p99_ms\": %.3f, \"itl_mean_ms\": %.3f, "
      "\"itl_p99_ms\": %.3f, \"hit_share\": %.5f, \"throughput_tok_s\": %.2f, \"goodput\": %.5f, \"shed\": %llu}",
      mean(of.ttft), of.ttft ? of.ttft->p50 : 0, p99(of.ttft), mean(of.inter_token), p99(of.inter_token),
      of.hit_share.value_or(0), of.output_tokens_per_second.value_or(0), of.goodput.value_or(0),
      static_cast<unsigned long long>(of.shed));
  return text.data();
}

void tell(const scenario& on, const std::vector<outcome>& all, std::ostream& out) {
  const auto& oracle = all.back();
  std::array<char, 300> line{};
  std::snprintf(line.data(), line.size(), "\n%s, %.0f %% load: %.2f requests/s\n\n", on.name.c_str(), all[0].load * 100,
                all[0].load * on.full_rate);
  out << line.data()
      << "| policy | TTFT mean ms | TTFT p99 ms | ITL p99 ms | hit share | tokens/s | goodput | mean / oracle | p99 / "
         "oracle |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const auto& one : all) {
    std::snprintf(line.data(), line.size(), "| %s | %.0f | %.0f | %.1f | %.3f | %.0f | %.4f | %.2f | %.2f |\n",
                  one.policy.c_str(), mean(one.seen.ttft), p99(one.seen.ttft), p99(one.seen.inter_token),
                  one.seen.hit_share.value_or(0), one.seen.output_tokens_per_second.value_or(0),
                  one.seen.goodput.value_or(0), mean(one.seen.ttft) / std::max(1e-9, mean(oracle.seen.ttft)),
                  p99(one.seen.ttft) / std::max(1e-9, p99(oracle.seen.ttft)));
    out << line.data();
  }
}

/// Four gateways and two routers against one of each, with the best policy: as gateways ask routers by default, and
/// when each query goes to whichever router takes it.
std::string replicas(const scenario& on, const trace& requests, std::ostream& out) {
  const auto policy =
      std::find_if(on.policies.begin(), on.policies.end(), [&](const auto& each) { return each.name == on.best; });
  if (policy == on.policies.end()) return "null";
  std::array<replay_summary, 3> seen;
  const auto rate = 0.7 * on.full_rate;
  run_all({[&] { seen[0] = play(on, requests, policy->make, rate); },
           [&] { seen[1] = play(on, requests, policy->make, rate, 4, 2); },
           [&] { seen[2] = play(on, requests, policy->make, rate, 4, 2, false); }});
  std::array<char, 400> line{};
  std::snprintf(line.data(), line.size(),
                "\n%s at 70 %% load by %s: TTFT p99 %.0f ms with one gateway and one router, %.0f ms with four and two "
                "(%.0f ms where any router takes a query)\n",
                on.name.c_str(), on.best.c_str(), p99(seen[0].ttft), p99(seen[1].ttft), p99(seen[2].ttft));
  out << line.data();
  std::snprintf(line.data(), line.size(),
                "{\"scenario\": \"%s\", \"one_p99_ms\": %.3f, \"four_two_p99_ms\": %.3f, \"any_router_p99_ms\": %.3f}",
                on.name.c_str(), p99(seen[0].ttft), p99(seen[1].ttft), p99(seen[2].ttft));
  return line.data();
}

}  // namespace

int main(int argc, char** argv) {
  const char* named = std::getenv("TRACE");
  const auto requests = bench::replay_trace(named ? named : "");
  auto all = scenarios(requests.block_tokens());
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::function<void()>> searches;
  for (const auto i : {1, 0, 2})
    searches.emplace_back([&, i] { find_full_rate(all[static_cast<std::size_t>(i)], requests); });
  run_all(searches);

  std::ostringstream tables;
  std::string json;
  std::string replica_json;
  for (const auto& on : all) {
    for (const auto load : loads) {
      const auto outcomes = compare(on, requests, load);
      tell(on, outcomes, tables);
      std::array<char, 300> head{};
      std::snprintf(
          head.data(), head.size(),
          "{\"name\": \"%s\", \"load\": %.2f, \"engines\": %zu, \"requests_per_second\": %.4f, \"policies\": {",
          on.name.c_str(), load, on.engines.size(), load * on.full_rate);
      json += (json.empty() ? "\n    " : ",\n    ") + std::string(head.data());
      for (std::size_t i = 0; i + 1 < outcomes.size(); ++i)
        json += (i == 0 ? "\n      \"" : ",\n      \"") + outcomes[i].policy + "\": " + figures_json(outcomes[i].seen);
      json += "},\n      \"oracle\": " + figures_json(outcomes.back().seen) + "}";
      std::cerr << on.name << ' ' << load << " done\n";
    }
    replica_json += (replica_json.empty() ? "\n    " : ",\n    ") + replicas(on, requests, tables);
  }
  std::cout << tables.str();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << "\ntook " << took.count() << " s\n";

  const auto folder = bench::report_folder(argc, argv);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  std::ofstream out(folder / "routing.json");
  out << "{\n  \"trace\": \"" << (named ? std::filesystem::path(named).filename().string() : "made-up")
      << "\",\n  \"minutes\": " << minutes() << ",\n  \"seconds\": " << took.count() << ",\n  \"scenarios\": [" << json
      << "\n  ],\n  \"replicas\": [" << replica_json << "\n  ]\n}\n";
  if (named && !std::getenv("MINUTES") && !std::getenv("ARRIVALS") && std::filesystem::is_directory("docs")) {
    std::ofstream page("docs/routing-benchmark.md");
    page
        << "# Routing policies on a trace\n\nWritten by `make bench-routing TRACE="
        << std::filesystem::path(named).filename().string()
        << "`; what it measures, and how, says tests/bench/routing.cpp. Ratios are to the oracle, which knows the true "
           "state of every engine.\n"
        << tables.str();
  }
  return out.good() ? 0 : 1;
}
