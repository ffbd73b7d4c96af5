#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>

#include "actors/simulator/replay_options.hpp"
#include "actors/simulator/replay_oracle.hpp"
#include "actors/simulator/replay_plot.hpp"
#include "actors/simulator/replay_router.hpp"
#include "actors/simulator/replay_trace_file.hpp"
#include "nodes/commands.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

namespace {

using simulator::replay_policy_maker;

struct replay_command {
  std::string trace;
  std::vector<std::string> policies;
  simulator::fleet_options fleet;
  std::optional<std::uint32_t> engines;
  std::optional<std::uint32_t> blocks;
  std::uint32_t gateways = 1;
  std::uint32_t routers = 1;
  bool router_affinity = true;
  std::uint64_t seed = 1;
  double speed = 1;
  std::vector<double> loads;
  std::optional<double> full_load;
  double minutes = 0;
  double warm_up = 0.1;
  bool as_json = false;
  std::string plot;
};

/// Stands for the configuration's policy.
constexpr std::string_view configured = "configured";

/// One policy, ready to be replayed.
struct named_policy {
  std::string name;
  replay_policy_maker make;
};

/// The only place that knows policies by their names: a strategy's, or `configured` for what the configuration says.
/// `apart`: for prefill and decode engines.
result<named_policy> find_policy(const std::string& name, const router::settings& routing, bool apart) {
  if (name == "oracle") return named_policy{name, simulator::oracle_policy()};
  auto how = routing.policy;
  if (name != configured) {
    std::vector<std::string> known{"oracle"};
    for (const auto strategy : router::strategies()) known.emplace_back(strategy);
    if (std::find(known.begin(), known.end(), name) == known.end())
      return error{errc::invalid_config, "--policy " + name + ": no such strategy" + router::did_you_mean(name, known)};
    how.strategy = name;
    how.config.reset();
  }
  const bool fits = apart ? router::disaggregates(how) : router::takes_single_engines(how);
  if (!fits)
    return error{errc::invalid_config, "--policy " + name + ": is for " +
                                           (apart ? "engines that do both, not for prefill and decode apart"
                                                  : "prefill and decode engines apart: --prefill N --decode M")};
  return named_policy{name, simulator::router_policy(how, routing.prediction)};
}

/// On a terminal only; redrawn ten times a second.
class progress_bar {
 public:
  progress_bar(std::string title, std::size_t whole)
      : title_(std::move(title)), whole_(whole), is_terminal_(::isatty(STDERR_FILENO) != 0) {}
  ~progress_bar() {
    if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
  }

  void at(std::size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || whole_ == 0 || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
    drawn_ = true;
    last_ = now;
    const auto filled = done * width / whole_;
    std::cerr << '\r' << title_ << " [" << std::string(filled, '#') << std::string(width - filled, '.') << "] "
              << done * 100 / whole_ << "%\x1b[K" << std::flush;
  }

 private:
  static constexpr std::size_t width = 40;
  std::string title_;
  std::size_t whole_;
  bool is_terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

int fail(const error& problem) {
  std::cerr << "infernex replay: " << render(problem) << '\n';
  return 1;
}

/// Everything that stays the same from one replay to the next.
struct stage {
  const replay_command& how;
  const simulator::trace& requests;
  simulator::replay_settings world;
  /// Of the trace as it is, requests a second.
  double trace_rate = 0;

  /// The trace at `rate` times its own speed, as often as makes the asked minutes.
  std::uint32_t repeats(double rate) const {
    const auto once_ms = simulator::repeated_trace(requests, 2, rate).arrival_ms(requests.size());
    return once_ms > 0 ? static_cast<std::uint32_t>(std::clamp(std::ceil(how.minutes * 60e3 / once_ms), 1.0, 1e6)) : 1;
  }

  simulator::replay_row run(const named_policy& policy, double rate, const std::string& note) const {
    const simulator::repeated_trace repeated(requests, repeats(rate), rate);
    simulator::replay_statistics statistics({.warm_up_ms = repeated.span_ms() * how.warm_up});
    simulator::replay_world fleet(world, repeated, policy.make, statistics);
    progress_bar bar(policy.name + note, repeated.size());
    fleet.run([&bar](std::size_t arrived) {
      bar.at(arrived);
      return true;
    });
    return {.policy = policy.name,
            .offered_per_second = repeated.requests_per_second(),
            .load = std::nullopt,
            .seen = statistics.summary()};
  }

  /// Requests a second at which the best policy's goodput is 95 %.
  std::optional<double> find_full_load(const std::vector<named_policy>& policies) const {
    double best = 0;
    for (const auto& policy : policies) {
      const auto goodput = [&](double rate) {
        return run(policy, rate / trace_rate, ", looking for full load").seen.goodput.value_or(1);
      };
      // Who is no better than the best so far need not be measured closer.
      if (best > 0 && goodput(best * 1.02) < simulator::full_load_goodput) continue;
      best = std::max(best, simulator::full_rate(goodput, best > 0 ? best : trace_rate).value_or(0));
    }
    return best > 0 ? std::optional(best) : std::nullopt;
  }
};

/// The rows, a policy after the other for each load.
result<std::vector<simulator::replay_row>> replay_all(const stage& on, const std::vector<named_policy>& policies) {
  std::vector<simulator::replay_row> rows;
  if (on.how.loads.empty()) {
    for (const auto& policy : policies) rows.push_back(on.run(policy, on.how.speed, ""));
    return rows;
  }
  if (on.trace_rate <= 0) return error{errc::invalid_config, "--loads: all requests of the trace arrive at once"};
  const auto full = on.how.full_load ? on.how.full_load : on.find_full_load(policies);
  if (!full) return error{errc::invalid_config, "no rate makes 95 % goodput: the fleet does not suit the trace"};
  std::cerr << "full load: " << *full << " requests/s"
            << (on.how.full_load ? "" : " (the best policy's goodput is 95 %)") << std::endl;
  for (const auto load : on.how.loads) {
    for (const auto& policy : policies) {
      rows.push_back(on.run(policy, load * *full / on.trace_rate, ", load " + std::to_string(load).substr(0, 4)));
      rows.back().load = load;
    }
  }
  return rows;
}

result<simulator::loaded_trace> load_trace(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return error{errc::not_found, name};
  auto loaded = simulator::read_trace(file, name);
  if (!loaded) return loaded;
  for (const auto& problem : loaded->problems) std::cerr << problem << '\n';
  if (loaded->bad_lines > 0)
    std::cerr << name << ": " << loaded->bad_lines << " bad lines were left out, " << loaded->requests.size()
              << " requests are used" << std::endl;
  return loaded;
}

int replay(replay_command how, const node_settings& node) {
  auto loaded = load_trace(how.trace);
  if (!loaded) return fail(loaded.failure());
  const auto& requests = loaded->requests;

  auto engine = node.simulator;
  fit_engine(engine, requests.block_tokens(), requests);
  if (how.blocks) engine.total_blocks = *how.blocks;
  how.fleet.engines = how.engines.value_or(node.up.engines);
  auto engines = simulator::replay_fleet_of(how.fleet, engine);
  if (!engines) return fail(engines.failure());
  stage on{how, requests, {}, simulator::repeated_trace(requests).requests_per_second()};
  on.world.engines = *std::move(engines);
  on.world.gateways = how.gateways;
  on.world.routers = how.routers;
  on.world.router_affinity = how.router_affinity;
  on.world.seed = how.seed;
  const auto milliseconds = [](auto duration) { return std::chrono::duration<double, std::milli>(duration).count(); };
  on.world.delays.report_interval_ms = milliseconds(node.agent.scrape_interval);
  on.world.delays.life_interval_ms = milliseconds(node.gateway.life_interval);
  if (const auto problem = simulator::replay_world::check(on.world, requests.block_tokens())) return fail(*problem);

  std::vector<named_policy> policies;
  const bool apart = how.fleet.prefill != 0;
  if (how.policies.empty())
    how.policies.emplace_back(
        apart && !node.router.policy.config && !router::disaggregates(node.router.policy) ? "infernex" : configured);
  for (const auto& name : how.policies) {
    auto policy = find_policy(name, node.router, apart);
    if (!policy) return fail(policy.failure());
    policies.push_back(*std::move(policy));
  }

  auto rows = replay_all(on, policies);
  if (!rows) return fail(rows.failure());
  const simulator::replay_report report{.trace = how.trace,
                                        .fleet = describe_fleet(how.fleet),
                                        .requests = requests.size(),
                                        .seed = how.seed,
                                        .observed_ttft = simulator::latency_summary::of(loaded->observed_ttft),
                                        .rows = *std::move(rows)};
  std::cout << (how.as_json ? report_json(report) : report_text(report)) << std::flush;
  if (!how.plot.empty()) {
    std::ofstream file(how.plot, std::ios::binary | std::ios::trunc);
    if (!(file << plot_svg(report) << std::flush)) return fail({errc::system_error, how.plot + " cannot be written"});
  }
  return 0;
}

void add_fleet_options(CLI::App& command, replay_command& into) {
  const auto engines = CLI::Range(1U, simulator::max_replay_engines);
  auto* aggregated = command.add_option("--engines", into.engines, "Engines; default: up.engines")->check(engines);
  command.add_option("--prefill", into.fleet.prefill, "Prefill engines, with --decode")
      ->check(engines)
      ->excludes(aggregated);
  command.add_option("--decode", into.fleet.decode, "Decode engines")->check(engines)->excludes(aggregated);
  command.add_option("--fail", into.fleet.failures, "ENGINE@SECONDS: it is lost then (repeat for more)");
  command.add_option("--add", into.fleet.additions, "[ROLE@]SECONDS: one more engine from then on (repeat for more)");
  command.add_option("--slow", into.fleet.slow,
                     "ENGINE=FACTOR: its steps take so many times as long (repeat for more)");
  command.add_option("--blocks", into.blocks, "KV blocks an engine, of the trace's size; default: simulator's memory")
      ->check(CLI::Range(1U, 1U << 28));
  command.add_option("--gateways", into.gateways, "Gateway replicas")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--routers", into.routers, "Router replicas")->check(CLI::Range(1, 256))->capture_default_str();
  command
      .add_option("--router-affinity", into.router_affinity,
                  "model: all gateways ask the same router for a model; none: whichever takes the query")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"model", true}, {"none", false}}));
}

}  // namespace

void add_replay(CLI::App& app, action& chosen) {
  auto* command =
      app.add_subcommand("replay", "A trace against simulated engines in virtual time: which policy suits it");
  auto role = add_role_options(*command, false);
  auto options = std::make_shared<replay_command>();
  command->add_option("--trace", options->trace, "Mooncake's JSONL, or what `infernex record` wrote")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--policy", options->policies, "Policy (repeat to compare); default: router.policy, or infernex");
  add_fleet_options(*command, *options);
  auto* speed = command->add_option("--speed", options->speed, "2: requests arrive twice as fast as in the trace")
                    ->check(CLI::Range(1e-6, 1e6))
                    ->capture_default_str();
  command->add_option("--loads", options->loads, "Shares of full load, e.g. 0.5,0.7,0.9")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 100.0))
      ->excludes(speed);
  command
      ->add_option("--full-load", options->full_load, "Full load, requests/s; default: where the best goodput is 95 %")
      ->check(CLI::Range(1e-6, 1e9))
      ->needs("--loads");
  command->add_option("--minutes", options->minutes, "Repeat the trace, with other blocks, to last at least so long")
      ->check(CLI::Range(0.0, 1e5))
      ->capture_default_str();
  command->add_option("--warm-up", options->warm_up, "Share of the time that is not counted")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Equal seeds, equal results")->capture_default_str();
  command->add_flag("--json", options->as_json, "As JSON");
  command->add_option("--plot", options->plot, "Write an SVG of TTFT against load");
  command->callback([role, options, &chosen] {
    chosen = [role, options] {
      const auto settings = load(*role);
      return settings ? replay(*options, *settings) : 1;
    };
  });
}

}  // namespace infernex::nodes
