#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>

#include "actors/discovery/static_list.hpp"
#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

namespace {

/// `INSTANCE,URL[,KV_EVENTS[,KV_REPLAY]]`.
discovery::engine_descriptor parse_engine(const std::string& text) {
  discovery::engine_descriptor engine;
  std::istringstream parts(text);
  for (auto* field : {&engine.instance, &engine.url, &engine.kv_events, &engine.kv_replay})
    std::getline(parts, *field, ',');
  return engine;
}

}  // namespace

void add_agent(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("agent", "The adapter beside one engine, or many");
  auto options = add_role_options(*command);
  auto engines = std::make_shared<std::vector<std::string>>();
  command->add_option("--engine", *engines, "INSTANCE,URL[,KV_EVENTS[,KV_REPLAY]]; may be repeated");
  command->add_option("--admin-port", options->port, "TCP port of /metrics, /healthz, /readyz (0: a free one)");
  command->callback([options, engines, &chosen] {
    chosen = [options, engines] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->port) settings->agent.admin_port = *options->port;
      for (const auto& text : *engines) settings->agent.engines.push_back(parse_engine(text));
      if (const auto mistakes = discovery::find_mistakes(settings->agent.engines); !mistakes.empty()) {
        for (const auto& one : mistakes) std::cerr << "infernex agent: " << discovery::render(one) << '\n';
        return 1;
      }
      return host(*settings, {"agent"});
    };
  });
}

}  // namespace infernex::nodes
