#include <iostream>

#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

void add_config(CLI::App& app, action& chosen) {
  auto* command = app.add_subcommand("config", "Configuration files");
  command->require_subcommand(1);
  auto file = std::make_shared<std::string>();
  auto* check = command->add_subcommand("check", "Print every mistake of a configuration file");
  check->add_option("file", *file, "Configuration file (YAML)")->required();
  check->callback([file, &chosen] {
    chosen = [file] {
      node_settings settings;
      if (!load_settings(*file, settings)) return 1;
      std::cout << *file << ": no mistakes\n";
      return 0;
    };
  });
}

}  // namespace infernex::nodes
