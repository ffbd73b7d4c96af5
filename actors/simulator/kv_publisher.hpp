#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/runtime/metrics.hpp"
#include "actors/simulator/kv_event.hpp"
#include "actors/simulator/settings.hpp"
#include "messages/result.hpp"

namespace infernex::simulator {

/// Publishes KV events over ZMQ as vLLM does: a PUB socket with frames topic, sequence, batch, and a ROUTER
/// socket that replays the last `buffer_steps` batches. A thread of its own owns both sockets; publish()
/// hands it batches through a bounded queue. A batch that finds the queue full is dropped, counted, and
/// seen by subscribers as a gap in the sequence.
class kv_publisher {
 public:
  /// Errors: system_error (an address cannot be bound).
  static result<std::unique_ptr<kv_publisher>> open(const kv_event_settings& how, std::uint32_t block_size,
                                                    metrics_registry& metrics);
  /// Ends the thread.
  ~kv_publisher();

  /// One batch; an empty one is none. Never blocks for long. From one thread.
  void publish(std::vector<kv_event> events);

  /// As bound, with the real ports. The second is empty if there is no replay.
  const std::string& endpoint() const;
  const std::string& replay_endpoint() const;

 private:
  struct impl;
  explicit kv_publisher(std::unique_ptr<impl> state);
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex::simulator
