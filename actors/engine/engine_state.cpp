#include "actors/engine/engine_state.hpp"

#include <algorithm>
#include <utility>

namespace infernex::engine {

std::chrono::milliseconds probe_pause(const health_limits& limits, std::uint32_t failures_in_a_row) {
  return failures_in_a_row == 1 ? std::min(limits.suspicion_pause, limits.probe_interval) : limits.probe_interval;
}

bool engine_state::enter(fb::EngineState next, std::string reason) {
  const bool differs = next != state_;
  state_ = next;
  reason_ = std::move(reason);
  return differs;
}

engine_state::change engine_state::on_probe(const health_probe& probe, std::optional<double> process_start) {
  if (probe.outcome == probe_outcome::answered) {
    failures_ = refusals_ = 0;
    if (probe.status == 200) return on_ready(process_start, probe.wall_ns);
    if (probe.status == 503) return {enter(fb::EngineState::Starting, "loading: /health answers 503"), false};
    return {enter(fb::EngineState::Down, "/health answers " + std::to_string(probe.status)), false};
  }
  ++failures_;
  refusals_ = probe.outcome == probe_outcome::refused ? refusals_ + 1 : 0;
  refused_since_ready_ = refused_since_ready_ || probe.outcome == probe_outcome::refused;
  if (refusals_ >= limits_.refusals_to_down) return {enter(fb::EngineState::Down, "connection refused"), false};
  if (failures_ >= limits_.failures_to_down) return {enter(fb::EngineState::Down, "/health does not answer"), false};
  return {};
}

engine_state::change engine_state::on_ready(std::optional<double> process_start, std::uint64_t wall_ns) {
  const bool was_ready = state_ == fb::EngineState::Ready;
  const bool refused = std::exchange(refused_since_ready_, false);
  const bool same_process = process_start && process_start_ && *process_start == *process_start_;
  change result{enter(fb::EngineState::Ready, "ready"), false};
  // Not ready in between: another process, unless this one says that it is the same and was only slow.
  result.epoch = was_ready ? process_start && process_start_ && !same_process : refused || !same_process;
  if (result.epoch)
    begin_epoch(process_start, wall_ns);
  else if (process_start)
    process_start_ = process_start;
  return result;
}

void engine_state::begin_epoch(std::optional<double> process_start, std::uint64_t wall_ns) {
  std::uint64_t fresh = wall_ns;
  // Years 2001 to 2200, as a sanity check of what the engine says.
  if (process_start && *process_start > 1e9 && *process_start < 7.3e9)
    fresh = static_cast<std::uint64_t>(*process_start * 1e9);
  // A larger epoch replaces a smaller one, also where the engine's clock is coarse or went back.
  if (epoch_ && fresh <= *epoch_) fresh = std::max(wall_ns, *epoch_ + 1);
  epoch_ = fresh;
  process_start_ = process_start;
}

}  // namespace infernex::engine
