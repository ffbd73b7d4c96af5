#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_gateway(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("gateway", "The OpenAI HTTP endpoint");
  auto options = add_role_options(*command);
  add_strategy_option(*command, *options);
  command->add_option("--port", options->port, "TCP port (0: a free one)");
  auto pd = std::make_shared<std::string>();
  add_pd_mode_option(*command, *pd);
  command->callback([options, pd, &chosen] {
    chosen = [options, pd] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->gateway.port = *options->port;
      if (!pd->empty()) settings->gateway.pd = pd_mode_of(*pd);
      return host(*settings, {"gateway"});
    };
  });
}

}  // namespace infernex::nodes
