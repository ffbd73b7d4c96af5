#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/engine/settings.hpp"
#include "actors/indexer/settings.hpp"
#include "actors/proxy/settings.hpp"
#include "actors/router/settings.hpp"
#include "actors/runtime/bus.hpp"
#include "actors/runtime/config.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/restart_policy.hpp"
#include "actors/simulator/settings.hpp"
#include "diagnosis/settings.hpp"
#include "gateway/settings.hpp"
#include "monitor/settings.hpp"

namespace infernex::nodes {

/// So many prefill and decode engines in one group.
struct pd_shape {
  std::uint32_t prefill = 0;
  std::uint32_t decode = 0;
  bool any() const { return prefill != 0; }
};
/// `2p2d`. Nothing: it is not of that form, or there are none or more than 128 of a kind.
std::optional<pd_shape> parse_pd_shape(std::string_view text);

/// `infernex up`.
struct up_settings {
  /// Aggregated ones.
  std::uint32_t engines = 4;
  /// Besides, or instead, a group of prefill and decode engines with a proxy.
  pd_shape pd;
  std::string kv_protocol = "nixl";
  /// Engines answer /sim/faults and /sim/state.
  bool faults = false;
  /// Empty: a nats-server of its own on a free port.
  std::string nats;
  restart_limits restarts{100, std::chrono::minutes(1), std::chrono::milliseconds(50),
                          std::chrono::milliseconds(2'000)};
};

/// Everything a configuration file can say, with the defaults of what it does not say. One file serves every
/// subcommand: each reads all of it, so that a mistake shows wherever the file is used.
struct node_settings {
  bus_settings bus;
  log::level log_level = log::level::info;
  /// How long a role may take to finish its requests at shutdown.
  std::chrono::milliseconds drain_deadline{10'000};
  gateway::settings gateway;
  router::settings router;
  indexer::settings indexer;
  engine::settings agent;
  proxy::settings proxy;
  simulator::settings simulator;
  monitor::settings monitor;
  diagnosis::settings diagnosis;
  up_settings up;
};

/// Reads a whole document into settings; the problems are the document's.
void read_settings(config::document& file, node_settings& into);

/// Loads `file` (empty: the defaults). On problems: prints them all to stderr, one a line, and returns false.
bool load_settings(const std::string& file, node_settings& into);

// One for each section of the file.
void read_gateway(config::section at, gateway::settings& into);
/// `route_timeout`: how long the gateway waits for a router, if the same file says what the gateway does.
void read_router(config::section at, router::settings& into,
                 std::optional<std::chrono::milliseconds> route_timeout = std::nullopt);
void read_indexer(config::section at, indexer::settings& into);
void read_agent(config::section at, engine::settings& into);
void read_simulator(config::section at, simulator::settings& into);
void read_proxy(config::section at, proxy::settings& into);
void read_monitor(config::section at, monitor::settings& into);
void read_diagnosis(config::section at, diagnosis::settings& into);
void read_kvmanager(config::section& router, std::optional<router::kvmanager_settings>& into,
                    std::optional<std::chrono::milliseconds> route_timeout);
void read_policy(config::section at, router::policy& into);
void read_queue(config::section at, router::queue_settings& into);
void read_prediction(config::section at, router::prediction_settings& into);
void read_fleet(config::section at, router::fleet_settings& into);

}  // namespace infernex::nodes
