#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/router/decide.hpp"
#include "actors/router/fleet.hpp"
#include "actors/router/reservations.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// What the indexer said for the items of one query.
struct match_answer {
  /// One match for each item with keys, in the items' order; null if there is no answer.
  const fb::KvMatchReply* reply = nullptr;
  /// Why there is none.
  std::string unknown_because;
};

/// Answers RouteQuery messages: decides for each item, reserves its share of load, and puts it into words.
/// One owner; fleet and reservations must outlive it.
class placer {
 public:
  placer(fleet& engines, reservation_book& open, policy how);

  /// The question for the indexer that the items' keys ask, or nothing: no keys, unknown model, or a
  /// strategy that does not look at them. Origin is left for the caller.
  std::optional<fb::KvMatchQueryT> question(const fb::RouteQuery& query);
  /// Origin is left for the caller.
  fb::RouteDecisionT place(const fb::RouteQuery& query, const match_answer& cached, clock_point now);

  struct fleet_counts {
    std::size_t known = 0;
    std::size_t ready = 0;
  };
  fleet_counts fleet_size();

 private:
  const model_endpoints* find(const fb::RouteQuery& query);
  std::unique_ptr<fb::RouteChoiceT> place_one(const fb::RouteItem& item, const model_endpoints* candidates,
                                              const overlaps& cached, clock_point now);

  fleet& engines_;
  published<topology>::reader topology_;
  reservation_book& open_;
  policy how_;
  rotation turn_;
};

}  // namespace infernex::router
