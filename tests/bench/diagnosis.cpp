// link: infernex_diagnosis_core infernex_monitor_core
//
// What the rules find on a simulated fleet whose faults are drawn by a seed, and what they say of one that has none:
//   make bench-diagnosis SEED=1001
// Tuning used seeds 1..99; a judgement uses one from 1000 on. The simulation was frozen before rules were tuned.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "diagnosis/engine.hpp"
#include "diagnosis/knowledge_base.hpp"
#include "monitor/sim_fleet.hpp"
#include "monitor/sim_plan.hpp"

using namespace infernex;
using monitor::fault_kind;

namespace {

constexpr std::uint64_t second = 1000;
constexpr std::uint64_t hour = 3'600'000;

double option(const char* name, double usual) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atof(text) : usual;
}

/// Which patterns name a fault; the first is the one of its own.
const std::map<std::string, std::set<std::string>>& expected() {
  static const std::map<std::string, std::set<std::string>> all{
      {"thermal-throttling",
       {"thermal-throttling", "throttled", "overload-frequency-drop", "slow-drift", "hot-neighbour"}},
      {"power-brake", {"power-brake", "throttled", "overload-frequency-drop", "odd-power"}},
      {"ecc-single", {"hbm-correctable-storm"}},
      {"ecc-double", {"hbm-multi-bit-ecc", "hbm-degrading", "row-remap-pending"}},
      {"page-retirement", {"hbm-degrading"}},
      {"page-limit", {"hbm-worn-out"}},
      {"row-remap-pending", {"row-remap-pending"}},
      {"row-remap-failure", {"row-remap-failure"}},
      {"link-flap", {"link-flap", "port-down"}},
      {"port-down", {"port-down"}},
      {"card-drop", {"card-drop", "card-missing"}},
      {"hang", {"hang"}},
      {"driver-mismatch", {"driver-mismatch"}},
      {"silent-telemetry", {"silent-telemetry"}},
      {"silent-node", {"silent-node"}},
      // Cooling that gets worse ends in throttling.
      {"hot-neighbour", {"hot-neighbour", "slow-drift", "thermal-throttling", "throttled", "overload-frequency-drop"}},
      {"slow-drift", {"slow-drift", "hot-neighbour", "thermal-throttling", "throttled", "overload-frequency-drop"}},
      {"driver-hang", {"driver-hang"}},
      {"link-errors", {"link-errors"}},
      {"pcie-signal", {"pcie-signal"}},
      {"optical-module", {"optical-module"}},
      {"memory-halved", {"memory-halved"}},
      {"network-misconfigured", {"network-misconfigured"}},
      {"driver-fault", {"nvidia-xid"}},
  };
  return all;
}

bool names_fault(const std::string& fault, const std::string& pattern) {
  const auto found = expected().find(fault);
  return found != expected().end() && found->second.contains(pattern);
}

/// A driver is the node's: all its devices refuse calls then.
bool hits_all(const monitor::sim_truth& truth) {
  return monitor::info(truth.fault.kind).node_wide || truth.fault.kind == fault_kind::driver_mismatch;
}

struct raised_verdict {
  std::string pattern;
  std::optional<std::uint32_t> device;
  std::uint64_t at_ms = 0;
  diagnosis::severity grade;
  std::string rule;
};

struct run_result {
  std::vector<monitor::sim_truth> truths;
  std::vector<raised_verdict> raised;
  std::uint64_t device_samples = 0;
  double engine_seconds = 0;
};

/// One node alone, through an engine of its own.
run_result run_node(const monitor::sim_settings& settings, std::uint32_t number,
                    const std::vector<monitor::sim_fault>& faults, std::uint64_t horizon_ms,
                    const std::shared_ptr<const diagnosis::knowledge>& base) {
  using clock = std::chrono::steady_clock;
  run_result out;
  monitor::sim_node node(settings, number, faults);
  diagnosis::engine rules(base);
  clock::duration spent{};
  bool told_inventory = false;
  while (node.now_ms() < horizon_ms) {
    node.step();
    const auto now = static_cast<diagnosis::millis>(node.time_ns() / 1'000'000);
    const auto began = clock::now();
    if (!node.silent()) {
      if (node.inventory_changed() || !told_inventory) rules.on_inventory(node.inventory(), now);
      told_inventory = true;
      for (const auto& event : node.events()) rules.on_event(event, now);
      rules.on_sample(node.sample(), now);
      out.device_samples += node.sample().devices.size();
    }
    rules.on_tick(now);
    spent += clock::now() - began;
    for (const auto& one : rules.take_changes())
      if (one->state == fb::VerdictState::Raised && one->suppressed_by.empty() &&
          one->grade >= diagnosis::severity::Warning)
        out.raised.push_back({one->pattern, one->who.device, node.now_ms(), one->grade, one->rule});
  }
  out.truths = node.truths();
  out.engine_seconds = std::chrono::duration<double>(spent).count();
  return out;
}

/// All nodes, on all cores.
std::vector<run_result> run_all(const monitor::sim_settings& settings, const std::vector<monitor::sim_fault>& faults,
                                std::uint64_t horizon_ms, const std::shared_ptr<const diagnosis::knowledge>& base) {
  std::vector<run_result> results(settings.nodes);
  std::atomic<std::uint32_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&] {
      for (auto n = next++; n < settings.nodes; n = next++) {
        std::vector<monitor::sim_fault> own;
        for (const auto& one : faults)
          if (one.node == n) own.push_back(one);
        results[n] = run_node(settings, n, own, horizon_ms, base);
      }
    });
  threads.clear();
  return results;
}

struct pattern_score {
  std::uint32_t faults = 0;
  std::uint32_t visible = 0;
  std::uint32_t found = 0;
  std::uint32_t verdicts = 0;
  std::uint32_t right = 0;
  std::vector<double> delays;
};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

/// A fault is found by a verdict of a right name from its begin until a minute after its end (a fault that shows once
/// and is repaired may be told in that time).
void score(const run_result& run, std::map<std::string, pattern_score>& scores, std::map<std::string, int>& wrong) {
  constexpr std::uint64_t grace = 60 * second;
  for (const auto& truth : run.truths) {
    auto& s = scores[std::string(monitor::info(truth.fault.kind).name)];
    ++s.faults;
    if (!truth.visible_ms) continue;
    ++s.visible;
    std::optional<std::uint64_t> first;
    for (const auto& v : run.raised) {
      const bool in_time = v.at_ms >= truth.fault.at_ms && v.at_ms <= truth.fault.at_ms + truth.fault.for_ms + grace;
      const bool here = !v.device || *v.device == truth.fault.device || hits_all(truth);
      if (in_time && here && names_fault(std::string(monitor::info(truth.fault.kind).name), v.pattern) && !first)
        first = v.at_ms;
    }
    if (!first) continue;
    ++s.found;
    s.delays.push_back(*first > *truth.visible_ms ? static_cast<double>(*first - *truth.visible_ms) / 1000 : 0);
  }
  for (const auto& v : run.raised) {
    const monitor::sim_truth* during = nullptr;
    bool right = false;
    for (const auto& truth : run.truths) {
      // What a fault leaves behind may show for a while: a rate that looks back over a day, a window that ends late.
      if (v.at_ms < truth.fault.at_ms || v.at_ms > truth.fault.at_ms + truth.fault.for_ms + 10 * grace) continue;
      if (v.device && *v.device != truth.fault.device && !hits_all(truth)) continue;
      during = &truth;
      right = right || names_fault(std::string(monitor::info(truth.fault.kind).name), v.pattern);
    }
    const auto name = during != nullptr ? std::string(monitor::info(during->fault.kind).name) : std::string("none");
    if (during != nullptr) {
      ++scores[name].verdicts;
      scores[name].right += right;
    }
    if (!right) ++wrong[name + " -> " + v.pattern + " (" + v.rule + ')'];
  }
}

struct totals {
  double recall = 1;
  double precision = 1;
};

totals total(const std::map<std::string, pattern_score>& scores, bool coded, const std::map<std::string, int>& wrong) {
  double visible = 0, found = 0, verdicts = 0, right = 0;
  for (const auto& [name, s] : scores) {
    const auto* info = monitor::find_fault(name);
    if (info == nullptr || info->coded != coded) continue;
    visible += s.visible;
    found += s.found;
    verdicts += s.verdicts;
    right += s.right;
  }
  if (coded)  // what was raised where nothing was wrong counts against the codes' precision, whatever it says
    for (const auto& [what, n] : wrong)
      if (what.starts_with("none")) verdicts += n;
  return {visible > 0 ? found / visible : 1, verdicts > 0 ? right / verdicts : 1};
}

}  // namespace

int main() {
  const auto loaded = diagnosis::load_knowledge("", "");
  for (const auto& one : loaded.problems) std::fprintf(stderr, "%s\n", config::render(one).c_str());
  if (!loaded.base) return 1;
  const auto seed = static_cast<std::uint64_t>(option("SEED", 1));
  const double clean_days = option("DAYS", 10);
  const double slow_days = option("SLOW_DAYS", 90);
  const auto each = static_cast<std::uint32_t>(option("EACH", 8));
  std::printf("seed %llu (%s); tuning: 1..99, judgement: from 1000\n", static_cast<unsigned long long>(seed),
              seed >= 1000 ? "judgement" : "tuning");

  // 1. Faults.
  monitor::sim_settings fleet;
  fleet.nodes = static_cast<std::uint32_t>(option("NODES", 24));
  fleet.model = "mixed";
  fleet.seed = seed;
  monitor::sim_plan_shape shape;
  shape.of_each = each;
  shape.horizon_ms = static_cast<std::uint64_t>(option("HOURS", 24)) * hour;
  const auto faults = monitor::draw_sim_plan(fleet, seed, shape);
  std::map<std::string, pattern_score> scores;
  std::map<std::string, int> wrong;
  std::uint64_t samples = 0;
  double seconds = 0;
  for (const auto& run : run_all(fleet, faults, shape.horizon_ms, loaded.base)) {
    score(run, scores, wrong);
    samples += run.device_samples;
    seconds += run.engine_seconds;
  }
  std::printf("%zu faults on %u nodes of %u devices over %.0f h, noisy, 1 Hz; %.2f M device samples, %.2f M/s a core\n",
              faults.size(), fleet.nodes, fleet.devices, static_cast<double>(shape.horizon_ms) / hour,
              static_cast<double>(samples) / 1e6, static_cast<double>(samples) / 1e6 / seconds);
  std::printf("%-24s %6s %8s %6s %9s %9s %8s %8s\n", "fault", "drawn", "visible", "found", "verdicts", "precise",
              "p50 s", "p99 s");
  std::vector<double> delays;
  for (const auto& [name, s] : scores) {
    std::printf("%-24s %6u %8u %6u %9u %9.3f %8.1f %8.1f\n", name.c_str(), s.faults, s.visible, s.found, s.verdicts,
                s.verdicts > 0 ? static_cast<double>(s.right) / s.verdicts : 1.0, quantile(s.delays, 0.5),
                quantile(s.delays, 0.99));
    delays.insert(delays.end(), s.delays.begin(), s.delays.end());
  }
  for (const auto& [what, n] : wrong) std::printf("  wrong: %s x%d\n", what.c_str(), n);
  const auto coded = total(scores, true, wrong);
  const auto uncoded = total(scores, false, wrong);

  // 2. Clean, at 1 Hz and at 0.1 Hz.
  double false_warnings = 0;
  double days = 0;
  int criticals = 0;
  std::map<std::string, int> alarms;
  const auto clean = [&](double device_days, std::uint32_t period_ms) {
    if (device_days <= 0) return;
    monitor::sim_settings quiet = fleet;
    quiet.seed = monitor::mix_seed(seed, period_ms);
    quiet.period_ms = period_ms;
    quiet.nodes = std::max(2U, static_cast<std::uint32_t>(device_days / quiet.devices + 0.5));
    std::uint64_t here = 0;
    double spent = 0;
    int found = 0;
    for (const auto& run : run_all(quiet, {}, 24 * hour, loaded.base)) {
      here += run.device_samples;
      spent += run.engine_seconds;
      for (const auto& v : run.raised) {
        ++found;
        ++alarms[v.pattern + " (" + v.rule + ')'];
        if (std::getenv("VERBOSE") != nullptr)
          std::printf("  %s device %d at %.2f h\n", v.rule.c_str(), v.device ? static_cast<int>(*v.device) : -1,
                      static_cast<double>(v.at_ms) / hour);
        criticals += v.grade == diagnosis::severity::Critical;
      }
    }
    const double ran = static_cast<double>(quiet.nodes) * quiet.devices;
    days += ran;
    false_warnings += found;
    std::printf("clean: %.0f device-days at %.1f Hz: %d verdicts; %.2f M device samples, %.2f M/s a core\n", ran,
                1000.0 / period_ms, found, static_cast<double>(here) / 1e6, static_cast<double>(here) / 1e6 / spent);
  };
  clean(clean_days, 1000);
  clean(slow_days, 10'000);
  for (const auto& [what, n] : alarms) std::printf("  false: %s x%d\n", what.c_str(), n);
  const double per_thousand = days > 0 ? false_warnings / days * 1000 : 0;

  std::printf(
      "coded: recall %.4f precision %.4f; uncoded: recall %.4f precision %.4f; fault to verdict p50 %.1f s p99 %.1f "
      "s\n",
      coded.recall, coded.precision, uncoded.recall, uncoded.precision, quantile(delays, 0.5), quantile(delays, 0.99));
  std::printf("false warnings %.2f per 1,000 device-days, false criticals %d, in %.0f clean device-days\n",
              per_thousand, criticals, days);

  std::filesystem::create_directories("build/bench");
  std::ofstream json("build/bench/diagnosis.json");
  json << "{\"seed\":" << seed << ",\"coded_recall\":" << coded.recall << ",\"coded_precision\":" << coded.precision
       << ",\"uncoded_recall\":" << uncoded.recall << ",\"uncoded_precision\":" << uncoded.precision
       << ",\"false_warnings_per_1000_device_days\":" << per_thousand << ",\"false_criticals\":" << criticals
       << ",\"clean_device_days\":" << days << ",\"verdict_p50_s\":" << quantile(delays, 0.5)
       << ",\"verdict_p99_s\":" << quantile(delays, 0.99)
       << ",\"device_samples_per_s_core\":" << static_cast<double>(samples) / seconds << ",\"patterns\":{";
  bool first = true;
  for (const auto& [name, s] : scores) {
    json << (std::exchange(first, false) ? "" : ",") << '"' << name << "\":{\"visible\":" << s.visible
         << ",\"found\":" << s.found << ",\"verdicts\":" << s.verdicts << ",\"right\":" << s.right
         << ",\"p50_s\":" << quantile(s.delays, 0.5) << ",\"p99_s\":" << quantile(s.delays, 0.99) << '}';
  }
  json << "}}\n";
  return 0;
}
