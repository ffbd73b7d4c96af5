#pragma once

#include <vector>

#include "actors/router/fleet.hpp"

namespace infernex::router {

/// Lines of the log on what became of engines. `Log` has info and warn, as actors/runtime/log.hpp has them: a core
/// knows no log of its own.
template <class Log>
void tell(const Log& log, const std::vector<fleet_event>& events) {
  for (const auto& e : events)
    log.info("engine changed", {{"model", e.model},
                                {"instance", e.instance},
                                {"from", fb::EnumNameEngineState(e.from)},
                                {"to", fb::EnumNameEngineState(e.to)},
                                {"reason", e.reason}});
}

template <class Log>
void tell(const Log& log, const std::vector<health_event>& events) {
  for (const auto& e : events) {
    const auto* asked = fb::EnumNameVerdictAction(e.now.asked);
    const auto* done = fb::EnumNameVerdictAction(e.now.applied);
    // Too many would be out: somebody has to look.
    if (e.now.asked == fb::VerdictAction::Isolate && !e.now.isolated())
      log.warn("engine health",
               {{"model", e.model}, {"instance", e.instance}, {"asked", asked}, {"done", done}, {"reason", e.now.why}});
    else
      log.info("engine health",
               {{"model", e.model}, {"instance", e.instance}, {"asked", asked}, {"done", done}, {"reason", e.now.why}});
  }
}

}  // namespace infernex::router
