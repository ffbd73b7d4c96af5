#pragma once

#include <memory>

#include "actors/indexer/index_set.hpp"
#include "gateway/decider.hpp"
#include "gateway/hand.hpp"

namespace infernex::gateway {

/// Decides in place, on this process's own index and topology.
std::unique_ptr<decider> make_route_embedded(gateway_shared& shared, http::worker& worker,
                                             std::shared_ptr<indexer::index_set> index);

}  // namespace infernex::gateway
