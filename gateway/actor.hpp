#pragma once

#include <memory>
#include <string>

#include "actors/actors.hpp"
#include "actors/router/fleet.hpp"
#include "actors/router/prediction_book.hpp"
#include "actors/runtime/role.hpp"
#include "gateway/life_inbox.hpp"
#include "gateway/pair_exchange.hpp"
#include "gateway/parity.hpp"
#include "gateway/presence_list.hpp"
#include "gateway/settings.hpp"
#include "gateway/waiting_room.hpp"

namespace infernex::gateway {

using pd_proxies = std::map<std::string, std::string, std::less<>>;

/// The gateway's changing facts. Only the actor's present incarnation changes them (I/O threads read topology and
/// predictions, count reservations on the board, and leave events in the inbox); they live on when it is restarted.
struct gateway_facts {
  gateway_facts(const settings& how, metrics_registry& metrics, std::string source, std::uint64_t epoch)
      : fleet(how.fleet),
        requests(std::move(source), epoch),
        predicted(how.prediction),
        routed(predicted),
        speeds(fleet.board()),
        cached_tokens(metrics, how.parity),
        room(how.policy.queue),
        topology(fleet.topologies()) {}
  router::fleet fleet;
  life requests;
  life_inbox inbox;
  presence_list routers;
  /// Their names, for the I/O threads; null: nobody was there yet.
  published<std::vector<std::string>> router_names;
  /// PD groups' proxies, and their URLs by group.
  presence_list pd_groups;
  published<pd_proxies> proxies;
  /// `pd: embedded`: null otherwise.
  std::shared_ptr<pair_exchanges> pairs;
  /// Of decisions taken here (`router: embedded`).
  router::prediction_index predicted;
  router::prediction_book routed;
  router::speed_book speeds;
  parity cached_tokens;
  /// Of requests for which all engines are saturated, where decisions are taken here.
  waiting_room room;
  published<router::topology>::reader topology;
  /// Version of the topology that predictions follow.
  std::uint64_t followed = 0;
};

/// Lets those who wait for an engine go, if there is room now.
void call_waiting(gateway_facts& facts, clock_point now);

/// Takes over what waits in the inbox.
void take_events(gateway_facts& facts, clock_point now);

/// Sends the RequestLife messages that are due: of changed models, or of all. What could not be sent goes with the
/// next ones.
void publish_life(gateway_facts& facts, bus& to, bool all, clock_point now);

/// Watches engines and other gateways, and reports this gateway's requests: at most once an interval while
/// something changes, once a second otherwise.
gateway_actor spawn_gateway_actor(const runtime& process, std::shared_ptr<gateway_facts> facts,
                                  std::chrono::milliseconds life_interval);

}  // namespace infernex::gateway
