#include "actors/router/saturation.hpp"

#include <algorithm>

namespace infernex::router {

namespace {

bool over_fixed_limits(const load_reading& load, const saturation_limits& limits) {
  if (load.kv_usage && *load.kv_usage >= limits.kv_usage) return true;
  return limits.max_concurrency != 0 && load.in_flight >= limits.max_concurrency;
}

/// Requests that wait in the engine by now, if its batch was full when it was measured: who came since waits too, who
/// left has let one of them in.
std::int64_t waiting_now(const load_reading& load) { return std::int64_t{*load.waiting} + load.placed_since; }

}  // namespace

bool is_saturated(const load_reading& load, const saturation_limits& limits) {
  if (over_fixed_limits(load, limits)) return true;
  return load.waiting && *load.waiting > 0 && waiting_now(load) >= std::int64_t{limits.queue_depth};
}

std::int64_t room_for(const load_reading& load, const saturation_limits& limits) {
  if (over_fixed_limits(load, limits)) return 0;
  // Not measured: a few, until somebody says how it bears them.
  const auto before = load.waiting ? waiting_now(load) : load.age ? load.placed_since : std::int64_t{load.in_flight};
  auto room = std::int64_t{limits.queue_depth} - before;
  if (limits.max_concurrency != 0) room = std::min(room, std::int64_t{limits.max_concurrency} - load.in_flight);
  return std::max<std::int64_t>(0, room);
}

bool has_room(const load_reading& load, const saturation_limits& limits) { return room_for(load, limits) > 0; }

std::int64_t room_for_all(const model_endpoints& model, const load_board& loads, const saturation_limits& limits,
                          clock_point now) {
  std::int64_t sum = 0;
  for (const auto& engine : model.endpoints)
    if (engine.takes_requests() && engine.role != fb::EngineRole::Prefill)
      sum += room_for(loads.read(engine.slot, now), limits);
  return sum;
}

bool could_take(const endpoint& engine, const engine_wanted& wanted) {
  if (!engine.takes_requests()) return false;
  if (engine.role != fb::EngineRole::Aggregated && !(wanted.disaggregates && engine.role == fb::EngineRole::Decode))
    return false;
  if (!wanted.adapter.empty() &&
      std::find(engine.adapters.begin(), engine.adapters.end(), wanted.adapter) == engine.adapters.end())
    return false;
  return std::find(wanted.exclude.begin(), wanted.exclude.end(), engine.instance) == wanted.exclude.end();
}

bool saturation::everywhere(const model_endpoints& model, const engine_wanted& wanted, const load_board& loads,
                            clock_point now) {
  const auto count = model.endpoints.size();
  if (began_ >= count) began_ = 0;
  bool any = false;
  for (std::size_t n = 0, i = began_; n < count; ++n, i = i + 1 == count ? 0 : i + 1) {
    const auto& engine = model.endpoints[i];
    if (!could_take(engine, wanted)) continue;
    any = true;
    if (is_saturated(loads.read(engine.slot, now), limits_)) continue;
    began_ = i;
    return false;
  }
  return any;
}

bool anyone_could_take(const model_endpoints& model, const engine_wanted& wanted) {
  return std::any_of(model.endpoints.begin(), model.endpoints.end(),
                     [&](const endpoint& engine) { return could_take(engine, wanted); });
}

bool saturation::room_somewhere(const model_endpoints& model, const engine_wanted& wanted, const load_board& loads,
                                clock_point now) {
  return std::any_of(model.endpoints.begin(), model.endpoints.end(), [&](const endpoint& engine) {
    return could_take(engine, wanted) && has_room(loads.read(engine.slot, now), limits_);
  });
}

void saturation::append_full(const model_endpoints& model, const load_board& loads, clock_point now,
                             std::vector<std::string_view>& names) const {
  for (const auto& engine : model.endpoints)
    if (!engine.takes_requests() || !has_room(loads.read(engine.slot, now), limits_)) names.push_back(engine.instance);
}

}  // namespace infernex::router
