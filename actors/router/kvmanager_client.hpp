#pragma once

#include <functional>
#include <memory>

#include "actors/router/kvmanager.hpp"
#include "actors/runtime/http/server.hpp"

namespace infernex::router {

/// Asks the KV manager, on an HTTP thread of its own. Who asks bounds the number of questions under way.
class kvmanager_client {
 public:
  /// Precondition: find_mistake(how) found none.
  explicit kvmanager_client(const kvmanager_settings& how);
  /// Questions under way are given up: their `done` is not called.
  ~kvmanager_client();

  /// Called once, on the HTTP thread, within the time-out; must not block. Errors: timed_out, unreachable,
  /// connection_lost, and those of read_kvmanager_answer.
  using completion = std::function<void(result<view<fb::KvMatchReply>>&&)>;
  /// Thread-safe.
  void ask(fb::KvMatchQueryT question, completion done);

 private:
  struct state;
  std::shared_ptr<const state> state_;
  http::io_threads threads_{1};
};

}  // namespace infernex::router
