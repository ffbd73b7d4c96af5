#pragma once

#include <memory>
#include <random>

#include "actors/actors.hpp"
#include "actors/router/metrics.hpp"
#include "actors/router/place.hpp"
#include "actors/router/request_queue.hpp"
#include "actors/router/settings.hpp"
#include "actors/runtime/role.hpp"

namespace infernex::router {

/// The indexer's answer to the question of one pending query, or why there is none.
struct match_result {
  std::uint64_t query = 0;
  result<view<fb::KvMatchReply>> answer;
};

/// What the router knows. Only the actor's present incarnation changes it; it lives on when that is
/// restarted.
struct router_facts {
  router_facts(const runtime& process, const settings& how)
      : engines(how.fleet),
        open(engines.board(), how.reservations),
        predicted(how.prediction),
        routed(predicted),
        places(engines, open, predicted, routed, how.policy, std::random_device{}()),
        queue(places, engines.board(), how.policy),
        name(process.process),
        source_id("router/" + process.process),
        epoch(process.epoch),
        metrics(process.metrics) {}

  fleet engines;
  reservation_book open;
  prediction_index predicted;
  prediction_book routed;
  placer places;
  request_queue queue;
  /// In subjects and announcements.
  std::string name;
  std::string source_id;
  std::uint64_t epoch;
  std::uint64_t sequence = 0;
  router_metrics metrics;
};

/// Keeps the fleet from what agents and gateways say, answers route queries, publishes the decisions.
router_actor spawn_router_actor(const runtime& process, const settings& how, std::shared_ptr<router_facts> facts);

/// Starts a router: its actor under a supervisor, and its HTTP endpoint if one is configured.
/// Errors: system_error (address in use).
result<std::unique_ptr<role>> start(runtime& process, const settings& how);

}  // namespace infernex::router
