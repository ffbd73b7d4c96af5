#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_router(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("router", "Places requests: answers route queries on the bus");
  auto options = add_role_options(*command);
  add_strategy_option(*command, *options);
  command->add_option("--admin-port", options->port, "TCP port of /metrics, /healthz, /readyz (0: a free one)");
  command->callback([options, &chosen] {
    chosen = [options] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->router.admin_port = *options->port;
      return host(*settings, {"router"});
    };
  });
}

}  // namespace infernex::nodes
