#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/actors.hpp"
#include "actors/runtime/restart_policy.hpp"

namespace infernex {

class metrics_registry;

/// The present incarnation of a supervised actor, for threads that feed it. Null while it is down: what is
/// sent then is dropped, as to any dead actor. Copies share.
template <class Handle>
class current_actor {
 public:
  void set(Handle handle) const {
    const std::lock_guard lock(state_->guard);
    state_->handle = std::move(handle);
  }
  Handle get() const {
    const std::lock_guard lock(state_->guard);
    return state_->handle;
  }
  template <class Message>
  void send(Message message) const {
    if (auto to = get()) caf::anon_send(to, std::move(message));
  }

 private:
  struct state {
    std::mutex guard;
    Handle handle;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

struct child_spec {
  std::string name;
  /// Spawns the actor; called again for each restart, from the supervisor's thread.
  std::function<caf::strong_actor_ptr(caf::actor_system&)> start;
};

/// Spawns a supervisor over `children` (one-for-one, strong handles). A child that ends by itself or by an
/// error is started again after a pause; one that dies too often is given up: logged as an error, counted,
/// and `give_up(name)` is called, so that the process can end and be replaced as a whole.
supervisor_actor spawn_supervisor(caf::actor_system& system, metrics_registry& metrics,
                                  std::vector<child_spec> children, restart_limits limits = {},
                                  std::function<void(const std::string&)> give_up = {});

/// Ends an actor and its children and waits for it. False if it still runs at the deadline. Not from an actor.
bool stop_and_wait(caf::actor_system& system, const caf::strong_actor_ptr& actor, std::chrono::milliseconds deadline);

}  // namespace infernex
