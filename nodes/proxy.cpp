#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_proxy(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("proxy", "The HTTP endpoint of a group of prefill and decode engines");
  auto options = add_role_options(*command);
  auto group = std::make_shared<std::string>();
  command->add_option("--port", options->port, "TCP port (0: a free one)");
  command->add_option("--group", *group, "Name of the PD group, as its engines announce it");
  command->callback([options, group, &chosen] {
    chosen = [options, group] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->proxy.port = *options->port;
      if (!group->empty()) settings->proxy.group.name = *group;
      return host(*settings, {"proxy"});
    };
  });
}

}  // namespace infernex::nodes
