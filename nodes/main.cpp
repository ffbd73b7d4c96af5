#include <iostream>

#include <CLI/CLI.hpp>

#include "nodes/commands.hpp"

int main(int argc, char** argv) {
  using namespace infernex::nodes;
  CLI::App app{"InferNex: routing and observation above LLM inference engines", "infernex"};
  app.require_subcommand(1);
  action chosen;
  for (auto add : {add_up,      add_gateway, add_router,    add_proxy, add_indexer, add_agent,  add_engine_sim,
                   add_monitor, add_hw_sim,  add_diagnosis, add_diag,  add_run,     add_config, add_kv,
                   add_record,  add_replay,  add_route,     add_sub,   add_decode,  add_version})
    add(app, chosen);
  CLI11_PARSE(app, argc, argv);
  try {
    return chosen();
  } catch (const std::exception& problem) {
    std::cerr << "infernex: " << problem.what() << '\n';
    return 1;
  }
}
