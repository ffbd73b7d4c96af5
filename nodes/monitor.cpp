#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_monitor(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("monitor", "The hardware of this node, on the bus");
  auto options = add_role_options(*command);
  struct overrides {
    std::optional<std::string> node, record, replay;
    double speed = 1;
  };
  auto given = std::make_shared<overrides>();
  command->add_option("--port", options->port, "TCP port of /metrics (0: a free one)");
  command->add_option("--node", given->node, "Name of this node (default: the host's)");
  command->add_option("--record", given->record, "Write every message to this file too");
  command->add_option("--replay", given->replay, "Say again what a recording says")->check(CLI::ExistingFile);
  command->add_option("--speed", given->speed, "Of a replay: 10 = ten times as fast")->check(CLI::Range(0.001, 1e6));
  command->callback([options, given, &chosen] {
    chosen = [options, given] {
      auto settings = load(*options);
      if (!settings) return 1;
      auto& how = settings->monitor;
      if (options->port) how.admin_port = *options->port;
      if (given->node) how.node = *given->node;
      if (given->record) how.record = *given->record;
      if (given->replay) {
        how.from = monitor::origin_kind::recording;
        how.replay = *given->replay;
        how.replay_speed = given->speed;
      }
      return host(*settings, {"monitor"});
    };
  });
}

}  // namespace infernex::nodes
