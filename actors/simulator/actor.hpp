#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/runtime/metrics.hpp"
#include "actors/runtime/role.hpp"
#include "actors/simulator/settings.hpp"
#include "messages/result.hpp"

namespace infernex::simulator {

/// A simulated engine that serves HTTP and publishes KV events. Not a CAF actor and not on the bus: to the
/// rest of the system it is an engine, seen only through an engine's own interfaces. All its state belongs
/// to one I/O thread; a second thread owns the ZMQ sockets.
class simulated_engine : public role {
 public:
  virtual std::uint16_t port() const = 0;
  /// Of the second listener (bootstrap or side channel); 0 without a transfer protocol.
  virtual std::uint16_t kv_port() const = 0;
  /// As bound; empty if off.
  virtual std::string kv_endpoint() const = 0;
  virtual std::string replay_endpoint() const = 0;
};

/// `metrics` is what /metrics shows, and lives longer than the engine. Errors: invalid_config, system_error.
result<std::unique_ptr<simulated_engine>> start(metrics_registry& metrics, const settings& values);

}  // namespace infernex::simulator
