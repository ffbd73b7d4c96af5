#pragma once

#include <cstdint>
#include <string_view>

namespace infernex::engine {

/// How an engine's event stream stands. Names are metrics labels.
enum class stream_state : std::uint8_t {
  /// Nothing is applied, and no replay has begun.
  cold,
  /// The engine's history is being read from its start.
  replaying,
  /// Every event since the engine's start is applied.
  live,
  /// Batches between the applied and the live ones are missing and being fetched.
  gap,
  /// Followed, but not confirmed for stale_after. An idle engine publishes nothing, so that without a replay
  /// socket this says no more than that nothing was heard; whether the engine lives, its health probe tells.
  stale,
  /// Followed, but something is missing for good.
  partial,
  count_
};
std::string_view name(stream_state state);

}  // namespace infernex::engine
