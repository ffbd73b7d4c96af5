#pragma once

#include <vector>

#include "actors/router/fleet.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::router {

/// Lines of the log on what became of engines.
inline void tell(const std::vector<fleet_event>& events) {
  for (const auto& e : events)
    log::info("engine changed", {{"model", e.model},
                                 {"instance", e.instance},
                                 {"from", fb::EnumNameEngineState(e.from)},
                                 {"to", fb::EnumNameEngineState(e.to)},
                                 {"reason", e.reason}});
}

inline void tell(const std::vector<health_event>& events) {
  for (const auto& e : events) {
    const bool withheld = e.now.asked == fb::VerdictAction::Isolate && !e.now.isolated();
    (withheld ? log::warn : log::info)("engine health", {{"model", e.model},
                                                         {"instance", e.instance},
                                                         {"asked", fb::EnumNameVerdictAction(e.now.asked)},
                                                         {"done", fb::EnumNameVerdictAction(e.now.applied)},
                                                         {"reason", e.now.why}});
  }
}

}  // namespace infernex::router
