#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace caf {
class actor_system;
}

namespace infernex {

class bus;
class metrics_registry;

/// What every role of a process shares. Lives longer than the roles.
struct runtime {
  caf::actor_system& system;
  bus& messages;
  metrics_registry& metrics;
  /// Unique in the installation, e.g. `host-4711`; the source id of the process's messages starts with it.
  std::string process;
  /// Nanoseconds since 1970 at start: the epoch of the process's messages.
  std::uint64_t epoch;
  /// What a role's supervisor does when an actor cannot be kept running.
  std::function<void(const std::string& actor)> give_up = {};
};

/// A running part (gateway, router, …) as `nodes` sees it: started by its module's start function, ended
/// by stop(), destroyed after.
class role {
 public:
  virtual ~role() = default;
  /// Stops accepting, finishes or cancels what runs until the deadline, ends its actors. Blocks.
  virtual void stop(std::chrono::milliseconds deadline) = 0;
};

}  // namespace infernex
