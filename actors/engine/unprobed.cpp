#include "actors/engine/unprobed.hpp"

namespace infernex::engine {

probe_result presumed_ready(std::uint64_t wall_ns, std::chrono::steady_clock::time_point at) {
  probe_result found;
  found.health = {probe_outcome::answered, 200, wall_ns};
  found.at = at;
  return found;
}

void say_unroutable(fb::EngineAnnounceT& announcement) {
  announcement.state = fb::EngineState::Draining;
  announcement.reason = "followed for its KV events only: its URL is not known";
}

}  // namespace infernex::engine
