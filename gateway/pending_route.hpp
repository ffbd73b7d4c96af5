#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/choice.hpp"
#include "gateway/waiter.hpp"
#include "messages/view.hpp"

namespace infernex::gateway {

/// A router in whose queue requests wait gives a sign of life every second; after this without one it is gone.
inline constexpr std::chrono::milliseconds router_silence{3'000};

/// One request that waits for a router. The bus may hold it longer than the request lives: nothing is touched
/// once it is abandoned.
struct pending_route {
  const route_request* request;
  waiter* wake;
  std::optional<result<choice>> answer;
  bool abandoned = false;
  /// A router has it in its queue.
  bool queued = false;
};
using pending_batch = std::vector<std::shared_ptr<pending_route>>;

/// Marks a request abandoned when its coroutine goes on, or is destroyed.
struct abandon_at_end {
  std::shared_ptr<pending_route> pending;
  ~abandon_at_end() { pending->abandoned = true; }
};

/// The first answer to a query: one for each request, in their order.
void deliver(const pending_batch& batch, const result<view<fb::RouteDecision>>& answer);

/// Whether one of them is still in a router's queue. Its client may have left it, of which the router says nothing.
bool someone_waits(const pending_batch& batch);

/// A later answer, for some of those that wait; a failure is for all of them.
void deliver_later(const pending_batch& batch, const result<view<fb::RouteDecision>>& answer);

/// Of one query, on the bus's threads: how many of its requests still wait in the router's queue.
class conversation {
 public:
  bool first() const { return !begun_; }
  /// How long to listen for the next answer; 0: this was the last.
  std::chrono::milliseconds after(const result<view<fb::RouteDecision>>& answer) {
    const auto count = [&](auto counts) -> std::ptrdiff_t {
      const auto* choices = answer ? (*answer)->choices() : nullptr;
      return choices ? std::count_if(choices->begin(), choices->end(), counts) : 0;
    };
    const auto waits = [](const fb::RouteChoice* c) { return c->queueing() == fb::Queueing::Waiting; };
    if (!std::exchange(begun_, true))
      waiting_ = count(waits);
    else
      waiting_ -= count([&](const fb::RouteChoice* c) { return !waits(c); });
    return waiting_ > 0 ? router_silence : std::chrono::milliseconds(0);
  }

 private:
  bool begun_ = false;
  std::ptrdiff_t waiting_ = 0;
};

}  // namespace infernex::gateway
