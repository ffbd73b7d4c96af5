#include "actors/engine/unprobed.hpp"

namespace infernex::engine {

probe_result presumed_ready(std::uint64_t wall_ns, std::chrono::steady_clock::time_point at) {
  probe_result found;
  found.health = {probe_outcome::answered, 200, wall_ns};
  found.at = at;
  return found;
}

void say_unroutable(const engine_descriptor& engine, fb::EngineAnnounceT& announcement) {
  if (engine.url.empty()) {
    announcement.state = fb::EngineState::Draining;
    announcement.reason = "followed for its KV events only: its URL is not known";
  } else if (!engine.routable && announcement.state == fb::EngineState::Ready) {
    announcement.state = fb::EngineState::Draining;
    announcement.reason = "followed for its KV events only: it serves the model under another name";
  }
}

}  // namespace infernex::engine
