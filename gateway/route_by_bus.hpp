#pragma once

#include <memory>

#include "gateway/decider.hpp"
#include "gateway/hand.hpp"

namespace infernex::gateway {

/// Asks routers on the bus; queries of one turn of the thread's loop travel in one message. Without an answer
/// in time it decides by load only, and says so.
std::unique_ptr<decider> make_route_by_bus(gateway_shared& shared, http::worker& worker);

}  // namespace infernex::gateway
