#include "nodes/host.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "actors/engine/agents.hpp"
#include "actors/indexer/actor.hpp"
#include "actors/proxy/proxy.hpp"
#include "actors/router/actor.hpp"
#include "actors/runtime/caf.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"
#include "diagnosis/actor.hpp"
#include "gateway/gateway.hpp"
#include "monitor/actor.hpp"
#include "nodes/embedded_pairs.hpp"
#include "nodes/signals.hpp"

namespace infernex::nodes {

namespace {

std::string process_name() {
  char name[256] = "host";
  ::gethostname(name, sizeof name - 1);
  return std::string(name) + "-" + std::to_string(::getpid());
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

/// The agents of this process: of the configured engines if it is an `agent`, and in any case of those that its
/// indexer is told of over HTTP. The indexer ends before them.
result<std::unique_ptr<role>> start_agents(runtime& shared, const node_settings& settings, bool configured,
                                           indexer::registrar& registered) {
  auto how = settings.agent;
  if (!configured) {
    how.engines.clear();
    how.admin_port.reset();
  }
  engine::agents_limits limits;
  limits.max_added = settings.indexer.max_registered;
  auto started = engine::start_agents(shared, how, limits);
  if (!started) return started.failure();
  registered.add = [&agents = **started](const discovery::engine_descriptor& engine) { return agents.add(engine); };
  registered.remove = [&agents = **started](const std::string& instance) { return agents.remove(instance); };
  registered.follows = [&agents = **started](const std::string& instance) { return agents.follows(instance); };
  return std::unique_ptr<role>(*std::move(started));
}

/// Starts the roles in the order in which they depend on each other; they end in reverse.
error start_roles(runtime& shared, const node_settings& settings, const std::vector<std::string>& roles,
                  std::vector<std::unique_ptr<role>>& running) {
  const auto wanted = [&roles](std::string_view name) {
    return std::find(roles.begin(), roles.end(), name) != roles.end();
  };
  const auto keep = [&running](auto&& started) -> error {
    if (!started) return started.failure();
    running.push_back(*std::forward<decltype(started)>(started));
    return {};
  };
  const bool embedded = wanted("gateway") && settings.gateway.router == gateway::router_mode::embedded;
  const auto index = std::make_shared<indexer::index_set>(settings.indexer.index);
  error problem;
  const auto failed = [&problem] { return problem.code != errc::none; };
  indexer::registrar registered;
  if (wanted("agent") || (wanted("indexer") && settings.indexer.max_registered != 0))
    problem = keep(start_agents(shared, settings, wanted("agent"), registered));
  // An embedded router looks the index up in place, so its replica lives here too.
  if (!failed() && (wanted("indexer") || embedded))
    problem = keep(indexer::start(shared, settings.indexer, index, std::move(registered)));
  if (!failed() && wanted("router")) problem = keep(router::start(shared, settings.router));
  if (!failed() && wanted("proxy")) problem = keep(proxy::start(shared, settings.proxy));
  // Before the monitor, so that it hears the first of it.
  if (!failed() && wanted("diagnosis")) problem = keep(diagnosis::start(shared, settings.diagnosis));
  if (!failed() && wanted("monitor")) problem = keep(monitor::start(shared, settings.monitor));
  if (!failed() && wanted("gateway"))
    problem = keep(gateway::start(shared, settings.gateway, embedded ? index : nullptr,
                                  make_embedded_pairs(shared.metrics, settings)));
  return problem;
}

}  // namespace

int host(const node_settings& settings, const std::vector<std::string>& roles) {
  block_signals();
  std::string identity;
  for (const auto& name : roles) identity += (identity.empty() ? "" : ",") + name;
  log::configure(settings.log_level, identity);

  metrics_registry metrics;
  auto bus_of = settings.bus;
  bus_of.client_name = "infernex-" + identity;
  auto connection = bus::connect(bus_of, metrics);
  if (!connection) {
    log::error("no bus", {{"problem", render(connection.failure())}});
    return 1;
  }
  actor_config config;
  caf::actor_system system{config};
  runtime shared{system, **connection, metrics, process_name(), now_ns(),
                 // A supervisor that gives up ends the process: whoever runs it starts it afresh.
                 [](const std::string& who) {
                   log::error("ending, for a part of this process cannot be kept running", {{"part", who}});
                   ::kill(::getpid(), SIGUSR1);
                 }};
  std::vector<std::unique_ptr<role>> running;
  int exit_code = 0;
  if (auto problem = start_roles(shared, settings, roles, running); problem.code != errc::none) {
    log::error("cannot start", {{"problem", render(problem)}});
    exit_code = 1;
  } else {
    log::info("started", {{"pid", ::getpid()}, {"bus", settings.bus.url}});
    exit_code = wait_for_end() == SIGUSR1 ? 1 : 0;
    log::info("ending");
  }
  // Top-down: accept nothing new, finish what runs, then the bus, and the actor system last.
  while (!running.empty()) {
    running.back()->stop(settings.drain_deadline);
    running.pop_back();
  }
  (*connection)->close(std::chrono::seconds(2));
  return exit_code;
}

}  // namespace infernex::nodes
