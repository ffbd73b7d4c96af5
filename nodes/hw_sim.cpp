#include <iostream>

#include <CLI/CLI.hpp>

#include "monitor/sim_plan.hpp"
#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

namespace {

bool load_faults(const std::string& file, monitor::settings& into) {
  auto document = config::document::load(file);
  if (!document) {
    std::cerr << file << ": " << render(document.failure()) << '\n';
    return false;
  }
  into.faults = monitor::read_sim_plan(document->root(), into.sim);
  const auto problems = document->problems();
  for (const auto& one : problems) std::cerr << config::render(one) << '\n';
  return problems.empty();
}

}  // namespace

void add_hw_sim(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("hw-sim", "A simulated fleet of accelerators, on the bus as monitors would");
  auto options = add_role_options(*command);
  struct overrides {
    std::optional<std::uint32_t> nodes, devices;
    std::optional<std::string> model, prefix, record;
    std::optional<std::uint64_t> seed;
    std::string faults;
    std::uint32_t draw = 0;
    double hours = 24;
  };
  auto given = std::make_shared<overrides>();
  command->add_option("--port", options->port, "TCP port of /metrics (0: a free one)");
  command->add_option("--nodes", given->nodes, "So many nodes")->check(CLI::Range(1, 100'000));
  command->add_option("--devices", given->devices, "So many devices a node")->check(CLI::Range(1, 64));
  command->add_option("--model", given->model, "What they are")
      ->check(CLI::IsMember({"ascend-910b", "nvidia-h100", "mixed"}));
  command->add_option("--prefix", given->prefix, "Nodes are called PREFIX0, PREFIX1, ...");
  command->add_option("--seed", given->seed, "Equal seeds, equal fleets");
  command->add_option("--record", given->record, "Write every message to this file too");
  auto* script = command->add_option("--faults", given->faults, "Script of faults (YAML; monitor/README.md)")
                     ->check(CLI::ExistingFile);
  command->add_option("--draw-faults", given->draw, "So many of each kind, drawn by the seed")->excludes(script);
  command->add_option("--hours", given->hours, "… over so many hours")->check(CLI::Range(0.1, 8760.0));
  command->callback([options, given, &chosen] {
    chosen = [options, given] {
      auto settings = load(*options);
      if (!settings) return 1;
      auto& how = settings->monitor;
      how.from = monitor::origin_kind::simulated;
      if (options->port) how.admin_port = *options->port;
      if (given->nodes) how.sim.nodes = *given->nodes;
      if (given->devices) how.sim.devices = *given->devices;
      if (given->model) how.sim.model = *given->model;
      if (given->prefix) how.sim.node_prefix = *given->prefix;
      if (given->seed) how.sim.seed = *given->seed;
      if (given->record) how.record = *given->record;
      if (!given->faults.empty() && !load_faults(given->faults, how)) return 1;
      if (given->draw != 0) {
        monitor::sim_plan_shape shape;
        shape.of_each = given->draw;
        shape.horizon_ms = static_cast<std::uint64_t>(given->hours * 3'600'000);
        how.faults = monitor::draw_sim_plan(how.sim, how.sim.seed, shape);
      }
      return host(*settings, {"monitor"});
    };
  });
}

}  // namespace infernex::nodes
