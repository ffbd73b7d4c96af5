#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/engine/kv_event.hpp"
#include "actors/engine/source_state.hpp"
#include "messages/registry.hpp"

namespace infernex::engine {

/// One or more batches of KV events, in order, with what is known of the stream after them. May be without
/// events, when only the stream's health has changed.
struct event_batch {
  /// Counts the listener's new beginnings; groups of an earlier one are out of date.
  std::uint64_t generation = 0;
  /// Forget the mirror before applying.
  bool clear_first = false;
  std::vector<kv_event_batch> batches;
  fb::KvHealth health = fb::KvHealth::Replaying;
  /// The same more closely, for metrics and status pages. A stale stream keeps its health: silence is no loss.
  stream_state stream = stream_state::cold;
  /// Sequence of the newest batch included so far.
  std::optional<std::uint64_t> engine_sequence;
  /// Totals since the listener began.
  source_state::counts totals;
  drop_counts dropped;
  /// By shape, batches and events; those that were decoded.
  form_counts forms;
  /// Hands the listener its credit back when the actor is done with the group.
  std::shared_ptr<const void> credit;
};

}  // namespace infernex::engine
