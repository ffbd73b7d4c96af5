#pragma once

#include <memory>

#include "actors/runtime/metrics.hpp"
#include "gateway/pair_exchange.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

/// For a gateway with `pd: embedded`: the proxy's state machines, with the deadlines, tries and breakers of section
/// `proxy`; whole answers and silence between two pieces are bounded by the gateway's own too. Null for others.
std::shared_ptr<gateway::pair_exchanges> make_embedded_pairs(metrics_registry& metrics, const node_settings& settings);

}  // namespace infernex::nodes
