#include <iostream>

#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"

namespace infernex::nodes {

void add_version(CLI::App& app, action& chosen) {
  app.add_subcommand("version", "Print the version")->callback([&chosen] {
    chosen = [] {
      std::cout << "infernex " INFERNEX_VERSION "\n";
      return 0;
    };
  });
}

}  // namespace infernex::nodes
