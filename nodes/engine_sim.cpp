#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "actors/simulator/actor.hpp"
#include "nodes/commands.hpp"
#include "nodes/role_options.hpp"
#include "nodes/signals.hpp"

namespace infernex::nodes {

namespace {

int simulate(const node_settings& settings) {
  block_signals();
  log::configure(settings.log_level, settings.simulator.instance);
  metrics_registry metrics;
  auto engine = simulator::start(metrics, settings.simulator);
  if (!engine) {
    std::cerr << "infernex engine-sim: " << render(engine.failure()) << '\n';
    return 1;
  }
  log::info("started", {{"model", settings.simulator.model}, {"port", (*engine)->port()}});
  wait_for_end();
  (*engine)->stop(settings.drain_deadline);
  return 0;
}

}  // namespace

void add_engine_sim(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("engine-sim", "A simulated engine with vLLM's interface");
  auto options = add_role_options(*command, false);
  struct overrides {
    std::optional<std::string> instance, model, events, replay;
    std::optional<double> speed;
    std::optional<simulator::transfer_protocol> kv_protocol;
    std::optional<simulator::transfer_role> kv_role;
    std::optional<std::string> kv_engine_id;
    std::optional<std::uint16_t> kv_port;
    bool faults = false;
  };
  auto given = std::make_shared<overrides>();
  command->add_option("--port", options->port, "TCP port (0: a free one)");
  command->add_option("--instance", given->instance, "Name in logs");
  command->add_option("--model", given->model, "Model served");
  command->add_option("--speed", given->speed, "10: ten times faster than a real engine");
  command->add_option("--kv-events", given->events, "ZMQ endpoint of the KV event publisher, tcp://address:port");
  command->add_option("--kv-replay", given->replay, "ZMQ endpoint of the replay socket");
  using simulator::transfer_protocol;
  using simulator::transfer_role;
  command->add_option("--kv-protocol", given->kv_protocol, "How KV is transferred")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, transfer_protocol>{{"none", transfer_protocol::none},
                                                   {"nixl", transfer_protocol::nixl},
                                                   {"mooncake", transfer_protocol::mooncake},
                                                   {"ascend", transfer_protocol::ascend},
                                                   {"ascend-layerwise", transfer_protocol::ascend_layerwise},
                                                   {"sglang", transfer_protocol::sglang}}));
  command->add_option("--kv-role", given->kv_role, "Its part in it")
      ->transform(CLI::CheckedTransformer(std::map<std::string, transfer_role>{
          {"both", transfer_role::both}, {"prefill", transfer_role::prefill}, {"decode", transfer_role::decode}}));
  command->add_option("--kv-engine-id", given->kv_engine_id, "Engine id (absent: drawn at every start)");
  command->add_option("--kv-port", given->kv_port, "Bootstrap port (mooncake, sglang) or side channel's");
  command->add_flag("--faults", given->faults, "Answer /sim/faults and /sim/state");
  command->callback([options, given, &chosen] {
    chosen = [options, given] {
      auto settings = load(*options);
      if (!settings) return 1;
      auto& sim = settings->simulator;
      if (options->port) sim.port = *options->port;
      if (given->instance) sim.instance = *given->instance;
      if (given->model) sim.model = *given->model;
      if (given->speed) sim.speed = *given->speed;
      if (given->events) sim.kv_events.endpoint = *given->events;
      if (given->replay) sim.kv_events.replay_endpoint = *given->replay;
      auto& kv = sim.kv_transfer;
      if (given->kv_protocol) kv.protocol = *given->kv_protocol;
      if (given->kv_role) kv.role = *given->kv_role;
      if (given->kv_engine_id) kv.engine_id = *given->kv_engine_id;
      if (given->kv_port) kv.bootstrap_port = kv.side_channel_port = *given->kv_port;
      if (given->faults) sim.faults = true;
      return simulate(*settings);
    };
  });
}

}  // namespace infernex::nodes
