#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::discovery {

/// How an engine takes part in prefill/decode disaggregation (messages/engine_announce.fbs).
struct kv_transfer {
  fb::KvProtocol protocol = fb::KvProtocol::None;
  /// As the engine's own configuration names it; empty: not said.
  std::string connector = {};
  std::string engine_id = {};
  /// On the engine's host.
  std::optional<std::uint16_t> bootstrap_port = {};

  friend bool operator==(const kv_transfer&, const kv_transfer&) = default;
};

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
  /// Keys and values, as the engine's platform has them; each key once.
  std::vector<std::pair<std::string, std::string>> labels = {};
  /// The accelerators it runs on, by their index on `node`.
  std::vector<std::uint32_t> devices = {};
  /// Unset: it takes no part in disaggregation, or nobody said how.
  std::optional<discovery::kv_transfer> kv_transfer = {};

  friend bool operator==(const engine_descriptor&, const engine_descriptor&) = default;
};

}  // namespace infernex::discovery
