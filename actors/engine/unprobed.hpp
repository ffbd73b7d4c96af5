#pragma once

#include "actors/engine/probe_result.hpp"
#include "actors/engine/settings.hpp"
#include "messages/registry.hpp"

namespace infernex::engine {

// An engine without a URL cannot be probed: it is taken to live as long as somebody has it followed.

/// What stands for its probes, once, so that its KV events are followed from their start.
probe_result presumed_ready(std::uint64_t wall_ns, std::chrono::steady_clock::time_point at);

/// Makes the announcement of an engine without a URL, or one that is not routable, say that no request can be sent to
/// it, although its blocks count. Others are left as they are.
void say_unroutable(const engine_descriptor& engine, fb::EngineAnnounceT& announcement);

}  // namespace infernex::engine
