// link: infernex_simulator_core
//
// Eight engines on one trace (TRACE=FILE), in virtual time, at RATES requests a second ("6 9 12") for MINUTES (20, and
// at least all of the trace once): all of them doing whole requests, every split into prefill and decode engines of one
// PD group, two groups of 2P2D, and 2P2D beside four that do whole requests. A table of what each policy is good for;
// of the splits 4P4D and the best one (most requests in time, then the least mean end-to-end time). In time: a first
// token within 2 s + 2 x what it takes on an idle engine, and at most 50 ms a token after it. Writes
// build/bench/pd.json, of which it replaces `replay` only.

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include "actors/simulator/replay_router.hpp"
#include "tests/bench/support/replay_fleet.hpp"
#include "tests/bench/support/replay_runs.hpp"
#include "tests/bench/support/report.hpp"

namespace {

using namespace infernex;
using namespace infernex::simulator;
namespace json = boost::json;

constexpr std::size_t engines = 8;

struct fleet_shape {
  std::size_t prefill = 0;
  std::size_t decode = 0;
  std::size_t groups = 1;

  bool split() const { return prefill + decode == engines && groups == 1; }
  std::string name() const {
    const auto pairs = std::to_string(prefill / groups) + "P" + std::to_string(decode / groups) + "D";
    const auto whole = engines - prefill - decode;
    if (whole == engines) return std::to_string(engines) + " aggregated";
    if (whole != 0) return pairs + " + " + std::to_string(whole) + " aggregated";
    return groups == 1 ? pairs : std::to_string(groups) + " x " + pairs;
  }
};

struct run {
  std::string policy;
  fleet_shape fleet;
  double rate = 0;
  replay_summary seen = {};
};

router::policy policy_of(const std::string& name) {
  router::policy how;
  how.strategy = name;
  return how;
}

replay_settings settings_of(const fleet_shape& fleet, std::uint32_t block) {
  replay_settings settings;
  settings.engines.assign(engines, bench::replay_engine_of(block));
  for (std::size_t i = 0; i < fleet.prefill + fleet.decode; ++i) {
    auto& one = settings.engines[i];
    one.role = i < fleet.prefill ? replay_role::prefill : replay_role::decode;
    one.group = "g" + std::to_string(i % fleet.groups);
  }
  return settings;
}

bool better(const replay_summary& a, const replay_summary& b) {
  const auto in_time = [](const replay_summary& s) { return std::round(s.goodput_per_token.value_or(0) * 1'000); };
  if (in_time(a) != in_time(b)) return in_time(a) > in_time(b);
  return bench::mean(a.end_to_end) < bench::mean(b.end_to_end);
}

json::object json_of(const run& one) {
  const auto& seen = one.seen;
  return {{"policy", one.policy},
          {"fleet", one.fleet.name()},
          {"requests_per_second", one.rate},
          {"ttft_mean_ms", bench::mean(seen.ttft)},
          {"ttft_p99_ms", bench::p99(seen.ttft)},
          {"tpot_mean_ms", bench::mean(seen.per_token)},
          {"tpot_p99_ms", bench::p99(seen.per_token)},
          {"itl_mean_ms", bench::mean(seen.inter_token)},
          {"itl_p99_ms", bench::p99(seen.inter_token)},
          {"e2e_mean_ms", bench::mean(seen.end_to_end)},
          {"output_tokens_per_second", seen.output_tokens_per_second.value_or(0)},
          {"hit_share", seen.hit_share.value_or(0)},
          {"shed", seen.shed},
          {"goodput_ttft", seen.goodput.value_or(0)},
          {"goodput", seen.goodput_per_token.value_or(0)}};
}

void tell(const run& one) {
  const auto& seen = one.seen;
  std::printf("| %s | %s | %.0f | %.0f | %.1f | %.1f | %.1f | %.0f | %.3f | %.3f |\n", one.fleet.name().c_str(),
              one.policy.c_str(), bench::mean(seen.ttft), bench::p99(seen.ttft), bench::mean(seen.per_token),
              bench::p99(seen.per_token), bench::p99(seen.inter_token), seen.output_tokens_per_second.value_or(0),
              seen.goodput.value_or(0), seen.goodput_per_token.value_or(0));
}

const std::array apart{"infernex", "infernex-pd", "pd-kv-aware", "pd-bucket", "random-pd"};

std::vector<run> runs_at(double rate) {
  std::vector<run> all;
  for (const auto* policy : {"infernex", "kv-aware", "random"}) all.push_back({policy, {}, rate});
  for (const auto* policy : apart)
    for (std::size_t prefill = 1; prefill < engines; ++prefill)
      all.push_back({policy, {prefill, engines - prefill}, rate});
  for (const auto* policy : {"infernex", "pd-kv-aware", "pd-bucket", "pd-bucket-random"})
    all.push_back({policy, {4, 4, 2}, rate});
  for (const auto* policy : {"infernex", "least-load-pd"}) all.push_back({policy, {2, 2}, rate});
  return all;
}

void tell_rate(const std::vector<run>& all, double rate) {
  std::printf(
      "\n%.2f requests/s\n\n| engines | policy | TTFT mean ms | TTFT p99 ms | TPOT mean ms | TPOT p99 ms | ITL p99 ms "
      "| "
      "tokens/s | first token in time | all in time |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      rate);
  const auto at_rate = [&](const run& one) { return one.rate == rate; };
  for (const auto& one : all)
    if (at_rate(one) && one.fleet.prefill == 0) tell(one);
  for (const auto* policy : apart) {
    const run* best = nullptr;
    const run* even = nullptr;
    for (const auto& one : all) {
      if (!at_rate(one) || one.policy != policy || !one.fleet.split()) continue;
      if (!best || better(one.seen, best->seen)) best = &one;
      if (one.fleet.prefill == engines / 2) even = &one;
    }
    tell(*even);
    if (best != even) tell(*best);
  }
  for (const auto& one : all)
    if (at_rate(one) && one.fleet.prefill != 0 && !one.fleet.split()) tell(one);
}

std::vector<double> rates() {
  const char* given = std::getenv("RATES");
  std::istringstream in(given ? given : "6 9 12");
  return {std::istream_iterator<double>(in), {}};
}

/// What another benchmark wrote there stays.
bool write(const std::filesystem::path& folder, json::object replay) {
  std::filesystem::create_directories(folder);
  const auto file = folder / "pd.json";
  json::object whole;
  if (std::ifstream old(file); old) {
    std::stringstream text;
    text << old.rdbuf();
    boost::system::error_code failed;
    if (auto read = json::parse(text.str(), failed); !failed && read.is_object()) whole = std::move(read.get_object());
  }
  whole.erase("runs");  // as earlier versions had it
  whole["replay"] = std::move(replay);
  std::ofstream out(file);
  out << json::serialize(whole) << '\n';
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  const char* named = std::getenv("TRACE");
  const auto requests = bench::replay_trace(named ? named : "");
  std::vector<run> runs;
  for (const auto rate : rates())
    for (auto& one : runs_at(rate)) runs.push_back(std::move(one));
  std::vector<std::function<void()>> jobs;
  for (auto& one : runs)
    jobs.emplace_back([&] {
      one.seen = bench::play(settings_of(one.fleet, requests.block_tokens()), requests,
                             router_policy(policy_of(one.policy)), one.rate, bench::minutes());
    });
  bench::run_all(jobs);
  for (const auto rate : rates()) tell_rate(runs, rate);

  json::object replay{{"trace", named ? std::filesystem::path(named).filename().string() : "made-up"},
                      {"minutes", bench::minutes()}};
  auto& rows = replay["runs"].emplace_array();
  for (const auto& one : runs) rows.push_back(json_of(one));
  return write(bench::report_folder(argc, argv), std::move(replay)) ? 0 : 1;
}
