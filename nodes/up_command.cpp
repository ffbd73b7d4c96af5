#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/role_options.hpp"
#include "nodes/up.hpp"

namespace infernex::nodes {

void add_up(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("up", "The whole stack on this machine, on simulated engines");
  auto options = add_role_options(*command);
  auto engines = std::make_shared<std::optional<std::uint32_t>>();
  command->add_option("--port", options->port, "TCP port of the gateway");
  command->add_option("--engines", *engines, "Simulated engines")->check(CLI::Range(1, 256));
  command->callback([options, engines, &chosen] {
    chosen = [options, engines] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->nats) settings->up.nats = *options->nats;
      if (options->port) settings->gateway.port = *options->port;
      if (*engines) settings->up.engines = **engines;
      return up(*settings, options->config);
    };
  });
}

}  // namespace infernex::nodes
