#pragma once

#include <memory>
#include <string>

#include "actors/actors.hpp"
#include "actors/router/fleet.hpp"
#include "actors/runtime/role.hpp"
#include "gateway/life.hpp"

namespace infernex::gateway {

/// The gateway's changing facts. Only the actor's present incarnation changes them (I/O threads read the
/// topology, and count reservations on the board); they live on when it is restarted.
struct gateway_facts {
  gateway_facts(const router::fleet_settings& fleet_bounds, std::string source, std::uint64_t epoch)
      : fleet(fleet_bounds), requests(std::move(source), epoch) {}
  router::fleet fleet;
  life requests;
};

/// Sends the RequestLife messages that are due: of changed models, or of all.
void publish_life(gateway_facts& facts, bus& to, bool all, clock_point now);

/// Watches engines and other gateways, and reports this gateway's requests: at most once an interval while
/// something changes, once a second otherwise.
gateway_actor spawn_gateway_actor(const runtime& process, std::shared_ptr<gateway_facts> facts,
                                  std::chrono::milliseconds life_interval);

}  // namespace infernex::gateway
