#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/router/load_board.hpp"

namespace infernex::router {

/// When an engine is full. Defaults are those of the Gateway API Inference Extension's utilization-detector.
struct saturation_limits {
  /// Requests waiting inside the engine.
  std::uint32_t queue_depth = 5;
  /// Share of its KV blocks in use, 0..1.
  double kv_usage = 0.8;
  /// Requests that gateways have in flight there; 0: no limit.
  std::uint32_t max_concurrency = 0;
};

/// For a request that comes while nobody waits: by what was measured, and where there was a backlog, by what was placed
/// there (and has ended there) since. Without a backlog nobody knows how many more the engine can run: only the next
/// measurement tells. What was not measured does not count against an engine.
bool is_saturated(const load_reading& load, const saturation_limits& limits);

/// For requests that waited, of which there may be many: since the last measurement an engine gets at most as many more
/// than it had as would fill its own queue, so that a stale measurement releases no flood.
bool has_room(const load_reading& load, const saturation_limits& limits);
/// How many of those. Where nobody has measured what waits there: as many as would fill its queue, since its last load,
/// or, before its first, in all.
std::int64_t room_for(const load_reading& load, const saturation_limits& limits);
/// Over all ready engines of a model.
std::int64_t room_for_all(const model_endpoints& model, const load_board& loads, const saturation_limits& limits,
                          clock_point now);

/// What decides whether an engine could take a request, whatever the policy's filters say.
struct engine_wanted {
  std::string_view adapter = {};
  std::span<const std::string_view> exclude = {};
  /// The policy chooses pairs: decode engines answer too.
  bool disaggregates = false;
};
bool could_take(const endpoint& engine, const engine_wanted& wanted);
bool anyone_could_take(const model_endpoints& model, const engine_wanted& wanted);

/// Looks over the engines of a model. Remembers where it found one that is not saturated and begins there the next
/// time, so that in a fleet with room it reads one engine's load. One thread's.
class saturation {
 public:
  explicit saturation(saturation_limits limits) : limits_(limits) {}

  /// Every engine that could take it is saturated. False if there is none: then that is the reason it is not placed.
  bool everywhere(const model_endpoints& model, const engine_wanted& wanted, const load_board& loads, clock_point now);
  /// One that could take it has room for a request that waited.
  bool room_somewhere(const model_endpoints& model, const engine_wanted& wanted, const load_board& loads,
                      clock_point now);
  /// Adds the engines without room, and those that are not ready, to `names`.
  void append_full(const model_endpoints& model, const load_board& loads, clock_point now,
                   std::vector<std::string_view>& names) const;

  const saturation_limits& limits() const { return limits_; }

 private:
  saturation_limits limits_;
  std::size_t began_ = 0;
};

}  // namespace infernex::router
