#include <iostream>

#include <CLI/CLI.hpp>

#include "actors/discovery/static_list.hpp"
#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

void add_agent(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("agent", "The adapter beside one engine, or many");
  auto options = add_role_options(*command);
  auto engines = std::make_shared<std::vector<std::string>>();
  command->add_option(
      "--engine", *engines,
      "INSTANCE,URL[,KV_EVENTS[,KV_REPLAY]][,KEY=VALUE...]; may be repeated. Keys: role, pd_group, node, kv_protocol, "
      "bootstrap_port");
  command->add_option("--admin-port", options->port, "TCP port of /metrics, /healthz, /readyz (0: a free one)");
  command->callback([options, engines, &chosen] {
    chosen = [options, engines] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->agent.admin_port = *options->port;
      for (const auto& text : *engines) {
        auto engine = discovery::parse_descriptor(text);
        if (!engine) {
          std::cerr << "infernex agent: --engine: " << engine.failure().detail << '\n';
          return 1;
        }
        settings->agent.engines.push_back(*std::move(engine));
      }
      if (const auto mistakes = discovery::find_mistakes(settings->agent.engines); !mistakes.empty()) {
        for (const auto& one : mistakes) std::cerr << "infernex agent: " << discovery::render(one) << '\n';
        return 1;
      }
      return host(*settings, {"agent"});
    };
  });
}

}  // namespace infernex::nodes
