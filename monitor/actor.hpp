#pragma once

#include <memory>

#include "actors/actors.hpp"
#include "actors/runtime/role.hpp"
#include "monitor/publisher.hpp"
#include "monitor/settings.hpp"

namespace infernex::monitor {

/// What the monitor's actor works with; it lives on when the actor is restarted, so that workers and sequences do too.
/// Only the present incarnation touches it.
struct monitor_world {
  std::unique_ptr<report_source> source;
  std::unique_ptr<publisher> to;
  std::chrono::milliseconds interval{1'000};
};

/// Asks the source once an interval and publishes what it says.
monitor_actor spawn_monitor_actor(const runtime& process, std::shared_ptr<monitor_world> world);

/// Starts the monitor: its source, its actor under a supervisor, its admin endpoint. Errors: those of the recordings,
/// invalid_request (a fault that cannot happen), system_error (admin port in use).
result<std::unique_ptr<role>> start(const runtime& process, const settings& how);

}  // namespace infernex::monitor
