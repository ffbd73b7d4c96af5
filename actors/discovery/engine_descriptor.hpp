#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "messages/registry.hpp"

namespace infernex::discovery {

/// What is known of an engine before anybody has talked to it. A data-parallel rank is an engine of its own, named
/// `<instance>-dp<rank>`, with event endpoints of its own (expand_ranks in static_list.hpp).
struct engine_descriptor {
  /// Unique in the installation; part of subjects and metrics labels.
  std::string instance;
  /// The served model name; empty: asked of the engine (`/v1/models`).
  std::string model;
  /// Base URL of the OpenAI endpoint, `http://host:port`.
  std::string url;
  /// ZMQ endpoint of the engine's KV event publisher, e.g. `tcp://127.0.0.1:5557`; empty: it has none.
  std::string kv_events;
  /// ZMQ endpoint of its replay socket; empty: it has none, and a gap cannot be repaired.
  std::string kv_replay;
  /// Prefix of the topics to subscribe to; empty: all.
  std::string kv_topic;
  fb::EngineRole role = fb::EngineRole::Aggregated;
  /// The machine it runs on, and the prefill/decode group it belongs to; empty: not known, none.
  std::string node;
  std::string pd_group;
  /// Tokens a block of the keys its agent publishes; unset: as for every engine of that agent.
  std::optional<std::uint32_t> block_size;
  /// How many data-parallel ranks publish KV events behind this URL; 1: the engine itself.
  std::uint32_t data_parallel_size = 1;
  /// The rank this is, of an engine that was expanded into its ranks.
  std::optional<std::uint32_t> data_parallel_rank;
  /// False: requests must not be sent to it, whatever its state.
  bool routable = true;

  friend bool operator==(const engine_descriptor&, const engine_descriptor&) = default;
};

}  // namespace infernex::discovery
