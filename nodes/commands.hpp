#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace infernex::nodes {

/// What the chosen subcommand does; its result is the exit code.
using action = std::function<int()>;

// Each adds its subcommand to the command line; the chosen one puts its work into `chosen`.
void add_version(CLI::App& app, action& chosen);
void add_decode(CLI::App& app, action& chosen);
void add_sub(CLI::App& app, action& chosen);
void add_config(CLI::App& app, action& chosen);
void add_kv(CLI::App& app, action& chosen);
void add_record(CLI::App& app, action& chosen);
void add_replay(CLI::App& app, action& chosen);
void add_route(CLI::App& app, action& chosen);
void add_engine_sim(CLI::App& app, action& chosen);
void add_agent(CLI::App& app, action& chosen);
void add_indexer(CLI::App& app, action& chosen);
void add_router(CLI::App& app, action& chosen);
void add_proxy(CLI::App& app, action& chosen);
void add_gateway(CLI::App& app, action& chosen);
void add_monitor(CLI::App& app, action& chosen);
void add_hw_sim(CLI::App& app, action& chosen);
void add_diagnosis(CLI::App& app, action& chosen);
void add_diag(CLI::App& app, action& chosen);
void add_run(CLI::App& app, action& chosen);
void add_up(CLI::App& app, action& chosen);

}  // namespace infernex::nodes
