#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/engine/settings.hpp"
#include "actors/runtime/role.hpp"
#include "messages/result.hpp"

namespace infernex::engine {

/// The agents of one process: those of its settings, and engines that come and go while it runs.
class agents : public role {
 public:
  /// Follows a further engine until remove(), or until the process ends. Its model must be named. Its url may be empty:
  /// then nothing can be asked of it and it is taken to live as long as it is followed; only its KV events say what it
  /// holds, and it is announced as Draining, so that no request is sent to it. Thread-safe, does not block.
  /// Errors: invalid_request (a mistake in the descriptor, the instance is followed already), overloaded.
  virtual error add(const engine_descriptor& engine) = 0;
  /// Ends such an agent, and announces its engine as Down, so that every index forgets its blocks at once. False: no
  /// engine of that name was added. Thread-safe, does not block.
  virtual bool remove(const std::string& instance) = 0;
  /// Whether such an agent is kept running. One that ends too often is given up, and its engine announced as Down.
  /// Thread-safe.
  virtual bool follows(const std::string& instance) const = 0;
};

struct agents_limits {
  /// Engines added at once; and names that may ever be added, for each leaves its labels in the metrics.
  std::size_t max_added = 256;
  std::size_t max_names = 4'096;
};

/// Starts an agent for every engine of the settings, supervised. Errors: invalid_config (every mistake of the list),
/// system_error (admin port in use).
result<std::unique_ptr<agents>> start_agents(runtime& process, const settings& with, agents_limits limits = {});

}  // namespace infernex::engine
