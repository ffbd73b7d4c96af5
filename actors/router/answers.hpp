#pragma once

#include <memory>
#include <vector>

#include "actors/router/actor.hpp"
#include "actors/router/decision_batch.hpp"

namespace infernex::router {

/// What the router's actor says: answers to queries, also those that come when a wait in its queue has ended, and the
/// decisions for who watches.
class answers {
 public:
  answers(bus& messages, std::shared_ptr<router_facts> facts) : messages_(messages), facts_(std::move(facts)) {}

  /// Decides, and answers.
  void give(const inbound<fb::RouteQuery>& query, const match_result* found, std::string unknown_because);
  void give(std::vector<request_queue::later> later);
  void refuse(const std::string& reply_to, errc why);
  /// The decisions since the last time.
  void publish();
  std::unique_ptr<fb::OriginT> next_origin();

 private:
  void send(const std::string& reply_to, fb::RouteDecisionT& answer);

  bus& messages_;
  std::shared_ptr<router_facts> facts_;
  decision_batch decided_;
};

}  // namespace infernex::router
