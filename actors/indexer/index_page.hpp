#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/indexer/engine_directory.hpp"
#include "actors/indexer/tracker.hpp"

namespace infernex::indexer {

/// What the HTTP side knows of the index besides its blocks (`GET /sources`, `/readyz`): an immutable snapshot, made by
/// the tracker's owner.
struct index_page {
  struct model {
    std::string name;
    std::uint64_t distinct_keys = 0;
    std::uint64_t bytes = 0;
    std::uint64_t refused_keys = 0;
  };
  std::vector<model> models;
  /// By model, then instance.
  std::vector<source_status> sources;
  /// Never null once published.
  std::shared_ptr<const engine_list> engines;
  /// Silence after which a source is stale.
  std::chrono::milliseconds stale_after{6'000};
  bool caught_up = false;
  std::string caught_up_because;

  std::span<const source_status> sources_of(std::string_view of_model) const;
};

index_page make_page(const tracker& from, const index_set& indexes, time_point now);

/// Whether the index has all that an engine holds: it equals what the engine's agent knows, and the agent knows all.
/// False while nobody has announced the engine (null).
inline bool is_exact(const source_status& source, const engine_entry* engine) {
  return source.exact && engine && engine->shows_all();
}

/// Sources that hold blocks, or may, and will be exact before long: not those at the index's byte limit, nor those
/// whose agents have lost events or get none.
std::size_t waiting_sources(const std::vector<source_status>& sources, const engine_directory& engines);

/// JSON: `{"models":[{"model":…,"distinct_keys":…,"bytes":…,"refused_keys":…,"instances":[{"instance":…,"keys":…,
/// "device_keys":…,"host_keys":…,"disk_keys":…,"digest":"16 hex
/// digits","exact":…,"sequence":…,"agent_epoch":…,"engine_epoch":…|null,"age_ms":…,"state":…,
/// "url":…|null,"engine_state":…|null,"kv_health":…|null,"reason":…|null}]}]}`. Epochs are nanoseconds since 1970.
/// `state` is one of `exact`, `syncing` (its agent replays events, or the index awaits what the agent has), `stale`
/// (its agent is silent), `down` (so is the engine, or it is starting), `capped` (the index was full and refused blocks
/// of it), `partial` (its agent has lost events) and `absent` (it publishes none).
std::string to_json(const index_page& page, time_point now);

}  // namespace infernex::indexer
