#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

namespace {
/// Of the cache-indexer's service, where routers of older installations look for it.
constexpr std::uint16_t default_port = 8080;
}  // namespace

void add_indexer(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("indexer", "The global view of which engine caches which prefix blocks");
  auto options = add_role_options(*command);
  command->add_option("--admin-port", options->port,
                      "TCP port of the HTTP API (0: a free one); 8080 unless configured");
  command->callback([options, &chosen] {
    chosen = [options] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->indexer.admin_port = *options->port;
      if (!settings->indexer.admin_port) settings->indexer.admin_port = default_port;
      return host(*settings, {"indexer"});
    };
  });
}

}  // namespace infernex::nodes
