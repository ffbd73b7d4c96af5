#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/discovery/engine_descriptor.hpp"
#include "actors/engine/engine_metrics.hpp"
#include "actors/engine/engine_state.hpp"
#include "actors/engine/source_state.hpp"

namespace infernex::engine {

using discovery::engine_descriptor;

/// What the agents of one process need to know.
struct settings {
  std::vector<engine_descriptor> engines;

  /// When an engine counts as down, and how often it is probed.
  health_limits health;
  std::chrono::milliseconds probe_timeout{400};
  /// Metrics are read with the health probe that comes next after scrape_interval.
  std::chrono::milliseconds scrape_interval{500};
  std::chrono::milliseconds scrape_timeout{400};
  std::vector<metric_source> metrics = default_metric_sources();
  /// How often `/v1/models` is read again (adapters come and go).
  std::chrono::milliseconds models_interval{10'000};

  std::chrono::milliseconds announce_interval{2'000};

  /// Whether an engine that becomes ready is sent three short prompts, to see that its blocks, tokens and template are
  /// what is believed of it; and how long one answer may take.
  bool parity_probe = true;
  std::chrono::milliseconds parity_timeout{30'000};

  /// Tokens a block of the keys that agents publish, whatever the engines' own; an engine's descriptor may say
  /// otherwise. Unset: each engine's own. Engines of one model share cached prefixes only at one size.
  std::optional<std::uint32_t> canonical_block_size;
  /// Blocks an agent keeps for one engine; about 75 bytes each, twice that where block sizes differ.
  std::uint64_t max_blocks = 4'000'000;
  /// Block keys a message, delta or snapshot chunk; 60,000 are 480 KB.
  std::uint32_t message_keys = 60'000;
  /// Replay and restart behaviour of the KV event streams.
  source_limits kv_stream;
  /// Groups of decoded batches an actor may have before it, per engine; above it the listener stops reading.
  std::uint32_t max_pending_groups = 8;

  /// TCP port on loopback of /metrics, /healthz and /readyz; 0 takes a free one, unset serves none.
  std::optional<std::uint16_t> admin_port;
};

}  // namespace infernex::engine
