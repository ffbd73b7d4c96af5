#pragma once

#include <memory>

#include "actors/router/topology.hpp"
#include "gateway/choice.hpp"
#include "gateway/waiter.hpp"

namespace infernex::gateway {

/// Decides where requests of one thread go.
class decider {
 public:
  virtual ~decider() = default;
  /// `request` and `wake` must live until the task has ended. Once `wake` is cancelled the result is empty.
  virtual http::task<choice> choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                                    waiter& wake) = 0;
  /// Decisions are taken here, and rest on what was decided before.
  virtual bool predicts() const { return false; }
  /// After the thread has ended and before its context goes: answers from elsewhere are dropped from now on.
  virtual void close() {}
};

}  // namespace infernex::gateway
