#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/host.hpp"
#include "nodes/role_options.hpp"

namespace infernex::nodes {

namespace {
constexpr std::uint16_t diagnosis_port = 9402;
}  // namespace

void add_diagnosis(CLI::App& app, action& chosen) {
  auto* command =
      app.add_subcommand("diagnosis", "What is wrong with the fleet's hardware, from what its monitors say");
  auto options = add_role_options(*command);
  auto overrides = std::make_shared<std::string>();
  command->add_option("--port", options->port,
                      "TCP port of /report, /verdicts and /metrics (0: a free one); 9402 unless configured");
  command->add_option("--overrides", *overrides, "File with what operators change of rules")->check(CLI::ExistingFile);
  command->callback([options, overrides, &chosen] {
    chosen = [options, overrides] {
      auto settings = load(*options);
      if (!settings) return 1;
      auto& how = settings->diagnosis;
      if (options->port) how.admin_port = *options->port;
      if (!how.admin_port) how.admin_port = diagnosis_port;
      if (!overrides->empty()) how.overrides = *overrides;
      return host(*settings, {"diagnosis"});
    };
  });
}

}  // namespace infernex::nodes
