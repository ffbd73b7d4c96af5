#pragma once

#include <deque>

#include "actors/proxy/exchange.hpp"

/// One exchange while it runs. Internal to this folder.
namespace infernex::proxy {

using steady = std::chrono::steady_clock;

/// A call with a deadline for the whole of it.
struct leg_call {
  explicit leg_call(http::worker& on) : deadline(on.context().get_executor()) {}
  http::cancel_source cancel;
  http::worker_timer deadline;
  bool too_late = false;
};
void expire_after(const std::shared_ptr<leg_call>& call, std::chrono::milliseconds limit);

/// Shared by the coroutine that answers the client, which relays the decode engine's stream itself, and by those that
/// may outlive it: the prefill leg and releases. All on one thread.
struct exchange_run : std::enable_shared_from_this<exchange_run> {
  exchange_run(exchange_plan p, http::worker& w, http::request& in, http::responder& way_back);

  exchange_plan plan;
  http::worker& on;
  /// The client's headers as engines get them.
  http::fields headers;
  conversation talk;
  /// Only the client's own coroutine uses it, and only until that ends.
  http::responder* out;
  steady::time_point received_at;
  /// When the present attempt began.
  std::optional<steady::time_point> pair_since;
  steady::duration waited_for_pair{0};

  /// What only the client's coroutine can do, in order.
  std::deque<action_of_conversation> waiting;
  http::waiter wake;
  http::worker_timer deadline;
  std::optional<outgoing_leg> decode;
  std::shared_ptr<leg_call> prefill_call;
  std::shared_ptr<leg_call> decode_call;
  std::vector<std::shared_ptr<metaserver_call>> calls;
  std::string registered;
  pair_charge charge;

  http::fields answer_headers;
  std::string content_type = "application/json";
  unsigned status = 0;
  bool client_gone = false;
  bool failed = false;
  bool refused = false;
  std::optional<steady::duration> ttft;
  // For the time added to the legs'.
  steady::duration prefill_took{0};
  std::optional<steady::time_point> decode_sent;
  steady::time_point piece_came;

  /// Does what can be done at once, and leaves the rest to the client's coroutine.
  void take(actions todo);
  void wake_up() { wake.notify(); }
  http::fields headers_for(const engine_ref& to, const outgoing_leg& what, std::string id) const;
  std::string new_id() const;
};

using run_pointer = std::shared_ptr<exchange_run>;

leg_failure failure_of(const error& problem, const leg_call& call);

/// Each takes its own hold of the run.
http::task<void> prefill_leg(run_pointer run, std::shared_ptr<leg_call> call, unsigned attempt, engine_ref to,
                             std::string id, outgoing_leg what);
http::task<void> release_leg(run_pointer run, action::release what);
/// Of the client's coroutine: sends the pending decode leg and relays its answer.
http::task<void> decode_leg(exchange_run& run);
http::task<void> query_bootstrap(exchange_run& run);
/// Passes on what waits for the client, up to what is not for it.
http::task<void> give_to_client(exchange_run& run);

}  // namespace infernex::proxy
