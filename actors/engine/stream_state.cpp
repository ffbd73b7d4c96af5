#include "actors/engine/stream_state.hpp"

namespace infernex::engine {

std::string_view name(stream_state state) {
  switch (state) {
    case stream_state::cold:
      return "cold";
    case stream_state::replaying:
      return "replaying";
    case stream_state::live:
      return "live";
    case stream_state::gap:
      return "gap";
    case stream_state::stale:
      return "stale";
    case stream_state::partial:
      return "partial";
    case stream_state::count_:
      break;
  }
  return "unknown";
}

}  // namespace infernex::engine
