#pragma once

#include <memory>
#include <optional>

#include "actors/engine/actor.hpp"
#include "actors/engine/kv_listener.hpp"
#include "actors/engine/ledger.hpp"
#include "actors/engine/metrics.hpp"
#include "actors/engine/parity_caller.hpp"
#include "actors/engine/parity_run.hpp"
#include "actors/engine/prober.hpp"

namespace infernex::engine {

/// What the agent of one engine holds. Used by its actor alone.
struct agent_state {
  std::shared_ptr<const agent_world> world;
  engine_descriptor engine;
  std::optional<ledger> book;
  std::optional<agent_metrics> metrics;
  std::unique_ptr<kv_listener> listener;
  std::unique_ptr<prober> probes;
  std::unique_ptr<parity_caller> parity_calls;
  std::optional<parity_run> parity;
  subscription snapshots;
  subscription announce_requests;
  std::shared_ptr<void> bus_watch;
  static inline const char* name = "engine_agent";
};

/// Publishes what the mirror has become.
void publish_deltas(agent_state& state);
/// The deltas first, so that what an announcement says of them has arrived before it.
void announce(agent_state& state);
void publish_load(agent_state& state, const fb::EngineLoadT& load);
/// Says what a parity probe found, once it has ended.
void on_parity(agent_state& state, const parity_run::ended& verdict);

}  // namespace infernex::engine
