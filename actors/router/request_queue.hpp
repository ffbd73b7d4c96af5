#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/router/place.hpp"
#include "actors/router/saturation.hpp"
#include "actors/router/waiting_line.hpp"
#include "messages/view.hpp"

namespace infernex::router {

/// Places the requests of queries, and lets those wait for which every engine is saturated: such a query is answered
/// again, for them alone, when their wait has ended. Until then it is answered every second that they still wait, which
/// is how gateways notice a router that is gone. One owner; placer and board must outlive it.
class request_queue {
 public:
  /// Gateways may take three times this without a word for the router's end.
  static constexpr std::chrono::milliseconds sign_interval{1'000};

  request_queue(placer& places, const load_board& loads, const policy& how);

  /// An answer after the first. Its origin is left for the caller.
  struct later {
    std::string reply_to;
    fb::RouteDecisionT answer;
  };

  /// The first answer to a query. Explanations never wait.
  fb::RouteDecisionT place(const view<fb::RouteQuery>& query, const std::string& reply_to, const match_answer& cached,
                           clock_point now);
  /// Places as many of those who wait as there is room for; and says who was put out of the line since the last call.
  std::vector<later> release(clock_point now);
  /// The same, with those who waited too long, and signs of life.
  std::vector<later> on_tick(clock_point now);
  /// Who has ended at its gateway waits for nothing: its client has gone.
  void on_life(const fb::RequestLife& message);
  /// Forgets all who wait, and says whom to tell.
  std::vector<std::string> abandon();

  std::size_t waiting() const { return line_.size(); }
  struct counters {
    std::uint64_t released = 0;
    std::uint64_t full = 0;
    std::uint64_t sheddable = 0;
    std::uint64_t too_long = 0;
    /// Their clients have gone.
    std::uint64_t left = 0;
  };
  const counters& count() const { return count_; }

 private:
  class asking;
  /// A query some of whose requests wait: a copy, for a message from the bus holds its subscription's credit.
  struct held_query {
    view<fb::RouteQuery> message;
    std::string reply_to;
    std::string source;
  };
  /// What the index said, in memory of its own.
  struct held_overlap {
    std::string instance;
    overlap blocks;
  };
  struct waiter {
    std::shared_ptr<const held_query> query;
    const fb::RouteItem* item = nullptr;
    std::string model;
    std::vector<held_overlap> cached;
    bool known = false;
    std::string unknown_because;
    clock_point since;
    std::size_t position = 0;
  };
  using ticket = waiting_line::ticket;

  std::unique_ptr<fb::RouteChoiceT> admit(asking& from, const fb::RouteItem& item, const placement& request,
                                          const model_endpoints& candidates, const overlaps& cached, bool saturated,
                                          clock_point now);
  void release_of(const std::string& model, clock_point now);
  bool can_go(ticket who, const model_endpoints* engines, clock_point now);
  void put_out(ticket who, std::string why, clock_point now);
  void answer(const waiter& to, std::unique_ptr<fb::RouteChoiceT> with);
  waiter take(ticket who);
  void give_signs(clock_point now);
  std::vector<later> take_answers();
  std::uint32_t retry_after_ms() const;

  placer& places_;
  const load_board& loads_;
  queue_settings how_;
  saturation saturated_;
  waiting_line line_;
  std::unordered_map<ticket, waiter> waiters_;
  /// By gateway and request id; clients may give the same id to several requests.
  std::unordered_multimap<std::string, ticket> by_id_;
  std::vector<later> answers_;
  clock_point next_sign_;
  /// Recent mean, of those released.
  double wait_ms_ = 0;
  counters count_;
};

}  // namespace infernex::router
