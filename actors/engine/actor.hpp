#pragma once

#include <cstdint>
#include <memory>

#include "actors/actors.hpp"
#include "actors/engine/event_batch.hpp"
#include "actors/engine/probe_result.hpp"
#include "actors/engine/settings.hpp"
#include "actors/runtime/role.hpp"

namespace zmq {
class context_t;
}
namespace infernex::http {
class io_threads;
}

namespace infernex::engine {

/// What the agents of one process share; each agent holds it until it has ended.
struct agent_world {
  runtime process;
  std::shared_ptr<const settings> options;
  std::shared_ptr<http::io_threads> threads;
  std::shared_ptr<zmq::context_t> zmq;
};

/// Spawns the agent of one engine: its prober and KV listener live and end with it. `epoch` must be larger
/// than that of the engine's agent before. Precondition: the descriptor has no mistakes.
engine_agent_actor spawn_agent(std::shared_ptr<const agent_world> world, const engine_descriptor& engine,
                               std::uint64_t epoch);

/// Starts an agent for every engine of the settings, supervised. Errors: invalid_config (every mistake of the
/// list), system_error (admin port in use).
result<std::unique_ptr<role>> start(runtime& process, const settings& with);

}  // namespace infernex::engine
