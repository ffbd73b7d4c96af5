#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/router/fleet.hpp"
#include "actors/router/policy.hpp"
#include "actors/router/prediction_book.hpp"
#include "actors/router/reservations.hpp"
#include "actors/router/speed_book.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// What the indexer said for the items of one query.
struct match_answer {
  /// One match for each item with keys, in the items' order; null if there is no answer.
  const fb::KvMatchReply* reply = nullptr;
  /// Why there is none.
  std::string unknown_because;
};

/// Answers RouteQuery messages: decides for each item, reserves its share of load, predicts what the chosen engine
/// will cache, and puts it into words. One owner, which also owns the predictions; all of them must outlive it.
class placer {
 public:
  placer(fleet& engines, reservation_book& open, prediction_index& predicted, prediction_book& routed,
         const policy& how, std::uint64_t seed = 1);

  /// Places by another configuration from now on. Precondition: it is right.
  void use(const scheduler_spec& config);

  /// The question for the indexer that the items' keys ask, or nothing: no keys, unknown model, or a
  /// strategy that does not look at them. Origin is left for the caller.
  std::optional<fb::KvMatchQueryT> question(const fb::RouteQuery& query);
  /// May keep a request from being placed now.
  class gate {
   public:
    virtual ~gate() = default;
    /// What is answered instead, or null: let it pass. `disaggregates`: decode engines answer too.
    virtual std::unique_ptr<fb::RouteChoiceT> hold(const fb::RouteItem& item, const placement& request,
                                                   const model_endpoints& candidates, const overlaps& cached,
                                                   bool disaggregates, clock_point now) = 0;
  };
  /// Origin is left for the caller. A query that only wants an explanation reserves and predicts nothing.
  fb::RouteDecisionT place(const fb::RouteQuery& query, const match_answer& cached, clock_point now,
                           gate* by = nullptr);
  /// One that was held, with what the index said then; `full`: engines it is not to go to.
  std::unique_ptr<fb::RouteChoiceT> place_waiting(const fb::RouteItem& item, std::string_view model,
                                                  const overlaps& cached, clock_point now,
                                                  std::span<const std::string_view> full);
  /// The engines of a model, null if unknown; good until the next call.
  const model_endpoints* find(std::string_view model) { return present().find(model); }
  bool disaggregates() const { return scheduler_->disaggregates(); }
  /// A gateway counts these requests itself now, or they are over: takes back their reservations, and lets their
  /// predictions follow them.
  void on_life(const fb::RequestLife& message, clock_point now);
  /// Expires reservations and predictions.
  void on_tick(clock_point now);

  struct fleet_counts {
    std::size_t known = 0;
    std::size_t ready = 0;
    /// Requests at all of them, reservations included.
    std::uint64_t in_flight = 0;
  };
  fleet_counts fleet_size();

 private:
  const topology& present();
  /// Takes back what is reserved for a request, at both engines of a pair.
  void drop(std::string_view request_id);
  void settle_prediction(const fb::Finished& one, bool pair, clock_point now);
  void reserve(std::string_view request_id, slot_ref slot, load_share share, clock_point now);
  void learn(std::string_view request_id, bool pair, const std::optional<speed_result>& answered);
  bool predicts() const { return scheduler_->uses_cache() && predicted_.how().enabled; }
  std::unique_ptr<fb::RouteChoiceT> place_one(const fb::RouteItem& item, const model_endpoints* candidates,
                                              overlaps cached, clock_point now, bool explain, gate* by,
                                              std::span<const std::string_view> full);

  fleet& engines_;
  published<topology>::reader topology_;
  std::uint64_t followed_ = 0;  // version of the topology that predictions follow
  reservation_book& open_;
  prediction_index& predicted_;
  prediction_index::reader predictions_;
  prediction_book& routed_;
  speed_book speeds_;
  policy how_;
  /// Of chance and turns: replicas must not all do the same.
  std::uint64_t seed_;
  std::unique_ptr<scheduler> scheduler_;
};

}  // namespace infernex::router
