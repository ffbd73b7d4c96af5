#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/engine/event_batch.hpp"
#include "actors/engine/replay_permits.hpp"
#include "actors/engine/source_state.hpp"

namespace zmq {
class context_t;
}

namespace infernex::engine {

struct listener_settings {
  /// For the log.
  std::string instance;
  std::string events_endpoint;
  /// Empty: gaps cannot be repaired.
  std::string replay_endpoint;
  std::string topic;
  source_limits limits;
  /// Groups whose credit may be out at once; above it nothing is read, and ZMQ's own bounds apply.
  std::uint32_t max_pending_groups = 8;
  std::shared_ptr<replay_permits> permits = replay_permits::of_process();
};

/// Follows one engine's KV events on a thread of its own: reads them from ZMQ, keeps order and asks for
/// replays (source_state), decodes, and hands groups of batches to `sink`, which is called on that thread
/// and must not block. Idle until the first resync().
class kv_listener {
 public:
  using sink = std::function<void(std::shared_ptr<const event_batch>)>;

  kv_listener(std::shared_ptr<zmq::context_t> context, listener_settings settings, sink deliver);
  /// Ends and joins the thread.
  ~kv_listener();
  kv_listener(const kv_listener&) = delete;
  kv_listener& operator=(const kv_listener&) = delete;

  /// Begins anew with fresh connections and the engine's whole history; groups carry `generation` from now
  /// on. Thread-safe.
  void resync(std::uint64_t generation);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex::engine
