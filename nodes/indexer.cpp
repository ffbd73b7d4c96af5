#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_indexer(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("indexer", "The global view of which engine caches which prefix blocks");
  auto options = add_role_options(*command);
  command->add_option("--admin-port", options->port, "TCP port of /metrics, /healthz, /readyz (0: a free one)");
  command->callback([options, &chosen] {
    chosen = [options] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->indexer.admin_port = *options->port;
      return host(*settings, {"indexer"});
    };
  });
}

}  // namespace infernex::nodes
