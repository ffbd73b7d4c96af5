#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_run(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("run", "Several roles in one process");
  auto options = add_role_options(*command);
  auto roles = std::make_shared<std::vector<std::string>>();
  command->add_option("--roles", *roles, "Of agent, indexer, router, proxy, monitor, diagnosis, gateway")
      ->required()
      ->delimiter(',')
      ->check(CLI::IsMember({"agent", "indexer", "router", "proxy", "monitor", "diagnosis", "gateway"}));
  command->callback([options, roles, &chosen] {
    chosen = [options, roles] {
      const auto settings = load(*options);
      return settings ? host(*settings, *roles) : 1;
    };
  });
}

}  // namespace infernex::nodes
