#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/engine/kv_event.hpp"
#include "actors/engine/stream_state.hpp"

namespace infernex::engine {

struct source_limits {
  /// Between the starts of two replays; grows with failures up to max_replay_pause.
  std::chrono::milliseconds replay_pause{200};
  std::chrono::milliseconds max_replay_pause{30'000};
  /// A replay without an answer for so long has failed.
  std::chrono::milliseconds replay_timeout{2'000};
  /// And so has one that takes longer than this, answers or not.
  std::chrono::milliseconds max_replay_time{120'000};
  /// So many failures in a row, and the stream is followed without what it missed.
  std::uint32_t max_replay_failures = 3;
  /// A quiet stream is compared with the engine so often: the only way to notice that the last batch was
  /// lost, since engines send no heartbeat. The first time after first_check.
  std::chrono::milliseconds first_check{1'000};
  std::chrono::milliseconds check_interval{10'000};
  /// Neither a batch nor a check has confirmed what is applied for so long: the stream is stale.
  std::chrono::milliseconds stale_after{30'000};
};

/// What to do with a batch.
enum class batch_verdict : std::uint8_t {
  apply,
  /// Forget what was applied, then apply.
  clear_and_apply,
  /// Forget what was applied; this batch comes again by replay.
  clear_and_drop,
  /// Known already, or about to come again.
  drop,
  /// (live only) Read nothing more live and offer this batch again once reads_live() holds.
  hold,
  /// (live only) Forget what was applied, then as hold.
  clear_and_hold,
  /// (live only) This batch, and what else waits in the socket, is of a former life of the engine: open the socket
  /// anew and start() again.
  renew,
};

/// Follows the sequence numbers of one engine's event stream: live batches, and replays that fill what is
/// missing (vLLM's protocol: every kept batch from a given sequence on, oldest first). Every batch is applied
/// once and in order, or the loss is known. How restarts are told:
///  - a live sequence goes backwards, or a known sequence comes with other content;
///  - a replay asked from the last applied batch does not begin with that very batch (an engine that has forgotten so
///    much is taken for another; the loss is then known by the replay from the start);
///  - a batch names another publisher than those before it;
///  - a batch that was held is not in the replay that was asked for after it.
/// A hole within a replay is one of its way here (a ROUTER drops what a full pipe has no room for): the rest is asked
/// for again. A hole at the same place twice is one in the engine's history, and a loss. A restart after which nothing
/// is heard until the very sequence that was due next shows in none of these: the engine's epoch (engine_state) tells
/// it, and the caller starts anew. Plain state: time is passed in, sockets are the caller's.
class source_state {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct counts {
    std::uint64_t batches = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t gaps = 0;
    std::uint64_t restarts = 0;
    std::uint64_t replays = 0;
    std::uint64_t replay_failures = 0;
    /// Replays that had to wait for others of the process.
    std::uint64_t replays_postponed = 0;
    /// Batches the engine no longer had.
    std::uint64_t losses = 0;
  };

  source_state(source_limits limits, bool can_replay);

  /// Begins anew: nothing is applied, the whole history is wanted.
  void start(time_point now);

  /// Whether begin_replay() would begin one.
  bool wants_replay(time_point now) const { return !running_ && due_ && now >= *due_ && replays(); }
  /// It cannot begin yet: too many others run.
  void postpone_replay(time_point until);
  /// The sequence from which to ask for a replay, if one is due; it then counts as begun.
  std::optional<std::uint64_t> begin_replay(time_point now);
  /// Whether live batches may be offered now; until then they wait in their socket.
  bool reads_live() const { return phase_ == phase::live; }

  /// `fingerprint`: a hash of the payload. `publisher`: where the batch names one.
  batch_verdict on_live(std::uint64_t sequence, std::uint64_t fingerprint, time_point now,
                        const std::optional<publisher_id>& publisher = {});
  batch_verdict on_replayed(std::uint64_t sequence, std::uint64_t fingerprint, time_point now,
                            const std::optional<publisher_id>& publisher = {});
  /// True: what was applied must be forgotten (the engine is another than the one it came from).
  bool on_replay_end(time_point now);
  /// Notices silence, and a replay that hangs. True: a running replay has failed and its connection is to be
  /// closed.
  bool on_tick(time_point now);
  /// When on_tick or begin_replay next have something to do.
  time_point next_deadline() const;

  /// Applied batches contained something unreadable.
  void on_damage() { partial_ = true; }

  /// Everything since the engine's start is applied / something is missing for good.
  bool caught_up() const { return phase_ == phase::live && !full_wanted_ && !runs_full(); }
  bool partial() const { return partial_; }
  stream_state state() const;
  /// Sequence of the newest applied batch.
  std::optional<std::uint64_t> last_sequence() const { return next_ ? std::optional(next_ - 1) : std::nullopt; }
  const counts& totals() const { return counts_; }

 private:
  enum class phase : std::uint8_t { cold, replaying, live };
  struct memory {
    std::uint64_t sequence = 0;
    std::uint64_t fingerprint = 0;
    bool used = false;
  };

  /// Replays in a row that are asked for again for a hole in them.
  static constexpr std::uint32_t max_broken_replays = 16;

  bool replays() const { return can_replay_ && !no_history_; }
  bool runs_full() const { return running_ && running_full_; }
  bool may_ask_again() const { return broken_ < max_broken_replays && broken_at_ != next_; }
  memory& remembered(std::uint64_t sequence);
  bool is_known(std::uint64_t sequence, std::uint64_t fingerprint);
  bool is_contradicted(std::uint64_t sequence, std::uint64_t fingerprint);
  bool is_overlap(std::uint64_t sequence, std::uint64_t fingerprint);
  bool publisher_changed(const std::optional<publisher_id>& publisher);
  void confirm(time_point now);
  time_point replay_deadline() const;
  void restarted();
  batch_verdict restart_live(std::uint64_t sequence, std::uint64_t fingerprint, time_point now);
  batch_verdict restart_replayed(time_point now);
  batch_verdict break_off(time_point now);
  void applied(std::uint64_t sequence, std::uint64_t fingerprint);
  void want_replay(bool from_start, time_point not_before);
  batch_verdict lose_and_apply(std::uint64_t sequence, std::uint64_t fingerprint);
  void forget();
  void go_live(time_point now);

  source_limits limits_;
  bool can_replay_;
  phase phase_ = phase::cold;
  std::uint64_t next_ = 0;
  bool partial_ = false;
  counts counts_;
  std::optional<publisher_id> publisher_;
  std::optional<publisher_id> former_publisher_;  // what is left of it in a socket is not a restart
  time_point confirmed_{};
  bool stale_ = false;

  // The live channel.
  std::optional<std::uint64_t> last_live_;
  bool accept_any_ = false;               // the next live batch is taken whatever its sequence
  std::optional<std::uint64_t> gap_end_;  // the held batch that a replay should lead up to
  bool held_judged_ = false;              // a replay that began after it is complete

  // Replays.
  bool begun_ = false;  // one has, since the start
  std::optional<time_point> due_;
  time_point started_ = time_point::min();
  time_point progress_{};
  std::uint64_t asked_ = 0;
  std::uint32_t failures_ = 0;
  // Replays with holes since the last without, and what was due at the last hole.
  std::uint32_t broken_ = 0;
  std::optional<std::uint64_t> broken_at_;
  bool maybe_no_history_ = false;
  bool no_history_ = false;   // the replay socket answers, but never with a batch
  bool full_wanted_ = false;  // the next replay is to begin at 0 and replaces what is applied
  bool running_ = false;
  bool running_full_ = false;
  bool verifies_ = false;  // it is to begin with the last applied batch
  bool serves_gap_ = false;
  bool answered_ = false;
  bool ignoring_ = false;

  std::vector<memory> memory_;
};

}  // namespace infernex::engine
