#pragma once

#include <string>

#include "actors/simulator/api.hpp"
#include "actors/simulator/fault_book.hpp"

namespace infernex::simulator {

/// What a fault that ends the engine, or its listener, comes to.
outage outage_of(const fault_rule& rule);

/// GET /sim/state: whatever a request could have left behind.
/// `{"engine_id","port","running","waiting","kv_blocks":{"used","total"},"answering","taking","connections",
///   "leases":[{"key","blocks","reading"}]}`; `connections` includes the asker's and idle ones.
std::string render_state(const engine_api& api);

}  // namespace infernex::simulator
