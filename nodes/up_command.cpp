#include <iostream>

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
  command->add_option("--engines", *engines, "Simulated engines that do all of a request; with --pd, none unless given")
      ->check(CLI::Range(0, 256));
  struct pd_options {
    std::string shape;
    std::optional<std::string> protocol;
    std::string mode;
    bool faults = false;
  };
  auto pd = std::make_shared<pd_options>();
  command
      ->add_option("--pd", pd->shape,
                   "XpYd: X prefill and Y decode engines in a group, with its proxy unless the gateway does its work")
      ->check([](const std::string& text) {
        return parse_pd_shape(text) ? std::string{} : "not of the form 2p2d: " + text;
      });
  command->add_option("--kv-protocol", pd->protocol, "How KV gets from prefill to decode")
      ->check(CLI::IsMember({"nixl", "mooncake", "ascend", "ascend-layerwise", "sglang"}));
  add_pd_mode_option(*command, pd->mode);
  command->add_flag("--faults", pd->faults, "Engines answer /sim/faults and /sim/state");
  command->callback([options, engines, pd, &chosen] {
    chosen = [options, engines, pd] {
      auto settings = load(*options);
      if (!settings) return 1;
      if (options->nats) settings->up.nats = *options->nats;
      if (options->port) settings->gateway.port = *options->port;
      if (!pd->shape.empty()) {
        settings->up.pd = *parse_pd_shape(pd->shape);
        settings->up.engines = 0;
      }
      if (pd->protocol) settings->up.kv_protocol = *pd->protocol;
      if (!pd->mode.empty()) settings->gateway.pd = pd_mode_of(pd->mode);
      if (pd->faults) settings->up.faults = true;
      if (*engines) settings->up.engines = **engines;
      if (settings->up.engines == 0 && !settings->up.pd.any()) {
        std::cerr << "infernex up: no engines\n";
        return 1;
      }
      return up(*settings, options->config);
    };
  });
}

}  // namespace infernex::nodes
