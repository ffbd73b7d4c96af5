#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/indexer/kv_index.hpp"

namespace infernex::indexer {

using time_point = std::chrono::steady_clock::time_point;

struct sync_settings {
  /// An announcement may overtake the deltas it speaks of (they travel on another connection): wait this
  /// long for them before asking for a snapshot.
  std::chrono::milliseconds patience{500};
  /// A snapshot that makes no progress for this long is asked for again, each time twice as late.
  std::chrono::milliseconds answer_timeout{2'000};
  std::chrono::milliseconds max_backoff{60'000};
  /// After this much silence of its agent an engine's blocks are not known to be exact; then it is forgotten.
  std::chrono::milliseconds silence{6'000};
  std::chrono::milliseconds forget{60'000};
  /// Deltas (and keys in them) kept while a snapshot is under way, and the size of a snapshot.
  std::size_t max_kept_deltas = 8'192;
  std::size_t max_kept_keys = 1 << 20;
  std::size_t max_snapshot_keys = 16 << 20;
  /// Snapshots under way at once, all engines together: what is collected of them lies outside the index's own limit.
  std::uint64_t max_snapshots = 16;
};

/// EngineAnnounce, as far as the index goes.
struct announcement {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  /// The engine is down or starting: whatever its agent remembers of it is not to be routed to.
  bool holds_nothing = false;
  std::optional<std::uint64_t> engine_epoch;
  std::uint64_t kv_sequence = 0;
  std::uint64_t kv_keys = 0;
  std::uint64_t kv_digest = 0;
};

/// KvDelta.
struct delta {
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  std::optional<std::uint64_t> engine_epoch;
  bool cleared = false;
  std::span<const block_key> removed;
  std::span<const block_key> added;
  std::uint64_t kv_keys = 0;
  std::uint64_t kv_digest = 0;
  tier on = tier::Device;
  bool closed = false;
};

/// KvSnapshotChunk.
struct snapshot_chunk {
  std::uint64_t epoch = 0;
  std::optional<std::uint64_t> engine_epoch;
  std::uint64_t as_of = 0;
  std::uint32_t index = 0;
  std::uint32_t total = 0;
  std::span<const block_key> keys;
  tier on = tier::Device;
  bool closed = false;
};

/// How one engine's part of the index stands to its agent's mirror.
enum class sync_state : std::uint8_t {
  /// Equal to it.
  exact,
  /// Not known to be equal: a snapshot or missing deltas are awaited.
  syncing,
  /// True, but without the newest blocks: the index is at its byte limit.
  capped,
  /// Its agent is silent.
  stale,
  /// The engine is down or starting, and holds nothing.
  down,
};
std::string_view name(sync_state s);

struct sync_counters {
  std::uint64_t deltas_applied = 0;
  /// Of an older epoch, or applied before.
  std::uint64_t deltas_ignored = 0;
  /// Over the bound of what is kept while a snapshot is under way.
  std::uint64_t deltas_shed = 0;
  std::uint64_t gaps = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t snapshots_requested = 0;
  std::uint64_t snapshots_applied = 0;
  std::uint64_t snapshots_refused = 0;
};

/// Keeps one engine's part of the index equal to its agent's mirror, whatever is lost, doubled or
/// overtaken on the way. The agent numbers its deltas from 1 in each epoch, starting from an empty mirror;
/// each delta and announcement says how many keys the mirror then has and their XOR, so every step is
/// checked. What cannot be followed step by step is replaced by a snapshot; deltas that arrive meanwhile
/// are kept and applied after it. Blocks of an engine that is down, or was replaced by a new process, are
/// forgotten at once. Where the index is at its byte limit and refuses blocks, the rest is followed as it comes, and a
/// snapshot is asked for when there is room again. One thread; the index must outlive it, with the instance added.
class source {
 public:
  source(kv_index& index, std::string instance, const sync_settings& settings, sync_counters& counters, time_point now);

  void on_announce(const announcement& said, time_point now);
  void on_delta(const delta& change, time_point now);
  void on_chunk(const snapshot_chunk& part, time_point now);
  void on_tick(time_point now);
  /// After a loss of the bus: silence meant nothing, and whatever was asked is asked again.
  void on_bus_back(time_point now);

  /// Asked after each call above: whether a snapshot is to be requested now. Says so once per request.
  bool take_request(time_point now);
  /// take_request would say so.
  bool wants_request(time_point now) const { return snapshot_ == asking::wanted && !down_ && now >= not_before_; }
  /// Why, in a word or two.
  std::string_view request_reason() const { return reason_; }
  bool awaits_snapshot() const { return snapshot_ == asking::asked; }
  bool forgotten(time_point now) const { return now - last_heard_ >= settings_.forget; }

  /// The index equals the agent's mirror as of sequence().
  bool exact(time_point now) const { return verified_ && now - last_heard_ < settings_.silence; }
  sync_state state(time_point now) const;
  std::uint64_t sequence() const { return applied_; }
  std::uint64_t epoch() const { return epoch_; }
  std::optional<std::uint64_t> engine_epoch() const { return engine_epoch_; }
  time_point last_heard() const { return last_heard_; }
  std::chrono::milliseconds age(time_point now) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - last_heard_);
  }

 private:
  struct kept_delta {
    delta head;
    std::vector<block_key> removed;
    std::vector<block_key> added;
  };
  struct collection {
    std::uint64_t as_of = 0;
    std::optional<std::uint64_t> engine_epoch;
    std::vector<bool> have;
    std::size_t missing = 0;
    std::array<std::vector<block_key>, 3> keys;  // by tier
    std::size_t size = 0;
    bool closed = true;
  };
  struct lag {
    std::uint64_t target = 0;
    time_point since;
  };
  enum class asking : std::uint8_t { no, wanted, asked };

  void begin_epoch(std::uint64_t epoch);
  void forget_contents();
  bool follow_engine(std::optional<std::uint64_t> engine_epoch, std::uint64_t at);
  void apply(const delta& change);
  void keep(const delta& change);
  void apply_kept();
  void install();
  void compare(std::uint64_t keys, std::uint64_t digest);
  void want(std::string_view reason);

  kv_index& index_;
  std::string instance_;
  const sync_settings& settings_;
  sync_counters& counters_;

  std::uint64_t epoch_ = 0;
  std::uint64_t announced_ = 0;  // sequence of the last announcement
  std::uint64_t applied_ = 0;    // sequence of the last delta that is in the index
  bool verified_ = false;
  bool down_ = false;
  bool refused_ = false;  // by the index, for its byte limit, since the last fresh start
  std::optional<std::uint64_t> engine_epoch_;
  std::uint64_t engine_epoch_at_ = 0;  // the delta sequence at which it was learnt
  time_point last_heard_;
  std::optional<lag> behind_;

  asking snapshot_ = asking::no;
  std::string_view reason_;
  std::uint32_t attempt_ = 0;
  time_point not_before_;
  time_point give_up_at_;
  std::optional<collection> collecting_;
  std::deque<kept_delta> kept_;
  std::size_t kept_keys_ = 0;
};

}  // namespace infernex::indexer
