#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "actors/runtime/http/client.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/runtime/supervisor.hpp"
#include "gateway/actor.hpp"
#include "gateway/attempt.hpp"
#include "gateway/decider.hpp"
#include "gateway/key_cache.hpp"
#include "gateway/metrics.hpp"
#include "gateway/placing.hpp"
#include "gateway/routing_headers.hpp"
#include "gateway/token_chain.hpp"

namespace infernex::gateway {

/// What all threads of a gateway share.
struct gateway_shared {
  const settings how;
  runtime process;
  std::shared_ptr<gateway_facts> facts;
  current_actor<gateway_actor> actor;
  /// Origin of this gateway's messages.
  std::string source;
  std::atomic<std::uint32_t> in_flight{0};
  /// `router: embedded`: the policy's configuration file as read anew; null: still that of `how`.
  published<router::scheduler_spec> newest_policy;
  /// Follows the policy.
  published<header_plan> headers;
  /// Sequence of this gateway's route queries.
  std::atomic<std::uint64_t> queries{0};
};

/// One I/O thread's own things: caches, back-offs, its view of the topology, and the events it gathers for
/// the actor. Used on that thread only, but for close(), which comes after the threads have ended.
class hand {
 public:
  hand(gateway_shared& shared, http::worker& worker, std::unique_ptr<decider> route);

  gateway_shared& shared;
  http::worker& worker;
  gateway_metrics metrics;
  request_scanner scanner;
  key_cache keys;
  token_endpoints endpoints;
  engine_backoff backoff;
  std::unique_ptr<decider> route;
  /// `pd: embedded`; null otherwise.
  std::unique_ptr<pair_exchange> pairs;
  /// Turn of the engines that are asked for tokens.
  std::uint64_t token_turn = 0;

  /// The present topology; may be null at the start. Hold it across co_await.
  std::shared_ptr<const router::topology> topology() { return topology_.shared(); }
  /// The headers to look at and to answer with. Do not hold it across co_await.
  const header_plan& headers() { return *headers_.get(); }
  /// The URL of a PD group's proxy; empty: none is on the bus.
  std::string proxy_of(std::string_view group);
  router::load_board& board() { return shared.facts->fleet.board(); }
  std::string new_request_id();

  /// Whether decisions taken here are to be predicted.
  bool predicts() const { return route->predicts(); }

  /// Reach the actor within a few milliseconds, in batches.
  void note(life_change change);
  void note(life_finish finish);
  /// Reaches it at once, for the next decision may rest on it.
  void note(routed_prompt prompt);
  /// Hands over what was noted and not sent yet; notes are refused from now on.
  void close();

 private:
  void send_soon();
  void send_now();

  published<router::topology>::reader topology_;
  published<header_plan>::reader headers_;
  published<pd_proxies>::reader proxies_;
  life_events events_;
  bool sending_ = false;
  bool sending_next_ = false;
  bool closed_ = false;
  std::uint64_t random_;
  std::uint64_t requests_ = 0;
};

/// A request's place at an engine, or at both of a pair: counted on the load board and in the life-cycle totals from
/// its making to its end, whatever ends it.
class placed_request {
 public:
  placed_request(hand& at, const router::model_endpoints& model, const route_request& request, const candidate& to);
  placed_request(const placed_request&) = delete;
  ~placed_request();

  /// The prompt is prefilled: its tokens no longer wait, and a pair's prefill engine has nothing more to do.
  void prefilled();
  /// What it met at the engine that answers, and at a pair's that prefills. Empty if the engine is not in this
  /// gateway's own topology (yet).
  const std::optional<router::speed_conditions>& met() const { return answers_.met; }
  const std::optional<router::speed_conditions>& met_at_prefill() const { return prefills_.met; }

 private:
  struct stake {
    /// Empty: none.
    std::string instance;
    std::optional<router::speed_conditions> met;
    router::load_share share;
  };
  stake stake_at(const router::model_endpoints& model, const std::string& instance, router::load_share share);
  void put(const stake& what, const std::string& started);
  void take(stake& what, router::load_share share);

  hand& at_;
  std::string model_;
  stake answers_;
  stake prefills_;
};

}  // namespace infernex::gateway
