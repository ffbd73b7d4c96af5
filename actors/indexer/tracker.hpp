#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/index_set.hpp"
#include "actors/indexer/source.hpp"
#include "messages/registry.hpp"

namespace infernex::indexer {

struct tracker_settings {
  sync_settings sync;
  /// Names longer than this (bytes) are refused.
  std::size_t max_name_bytes = 512;
  /// Overlaps in one reply; beyond, each chain keeps its longest.
  std::size_t max_overlaps = 8'192;
};

/// What the index knows of one engine.
struct source_status {
  std::string model;
  std::string instance;
  std::uint64_t keys = 0;
  std::uint64_t digest = 0;
  bool exact = false;
  std::uint64_t sequence = 0;
  std::uint64_t agent_epoch = 0;
  std::optional<std::uint64_t> engine_epoch;
  time_point last_heard;
  sync_state state = sync_state::syncing;
  /// Of `keys`, by tier: device, host, disk.
  std::array<std::uint64_t, 3> tier_keys{};
};

/// A snapshot to be asked of an agent, now.
struct snapshot_request {
  std::string model;
  std::string instance;
  std::string_view reason;
};

/// All sources of an indexer, and the writer of its index_set. One thread. While the bus is down nothing
/// expires and nothing is asked: silence then says nothing of the agents.
class tracker {
 public:
  tracker(tracker_settings settings, std::shared_ptr<index_set> indexes);
  ~tracker();

  /// Each returns the snapshots to be asked for.
  using requests = std::vector<snapshot_request>;
  requests on_announce(const fb::EngineAnnounce& message, time_point now);
  requests on_delta(const fb::KvDelta& message, time_point now);
  requests on_chunk(const fb::KvSnapshotChunk& message, time_point now);
  requests on_tick(time_point now);
  requests on_bus(bool connected, time_point now);

  /// Origin is left for the caller.
  fb::KvMatchReplyT match(const fb::KvMatchQuery& query, time_point now);

  /// Whether parts of a snapshot are still expected.
  bool awaits_snapshot(std::string_view model, std::string_view instance) const;

  std::vector<source_status> status(time_point now) const;
  const sync_counters& counters() const { return counters_; }
  /// Messages refused for a bound: models, instances, length of names.
  std::uint64_t refused() const { return refused_; }
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  struct model_state;
  /// Null if a bound was reached.
  source* obtain(std::string_view model, std::string_view instance, time_point now);
  const source* find(std::string_view model, std::string_view instance) const;
  void after(requests& out, std::string_view model, std::string_view instance, source& of, time_point now) const;
  /// Asks on behalf of those whose turn has come, when snapshots have ended.
  void ask_more(requests& out, time_point now) const;
  std::size_t snapshots_under_way() const;

  tracker_settings settings_;
  std::shared_ptr<index_set> indexes_;
  std::map<std::string, model_state, std::less<>> models_;
  sync_counters counters_;
  std::uint64_t refused_ = 0;
  std::uint64_t forgotten_ = 0;
  bool bus_connected_ = true;
};

}  // namespace infernex::indexer
