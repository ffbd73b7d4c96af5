#include "actors/runtime/supervisor.hpp"

#include <caf/scoped_actor.hpp>

#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex {

namespace {

struct child {
  child_spec spec;
  caf::strong_actor_ptr running;
  restart_policy policy;
  std::optional<std::chrono::steady_clock::time_point> start_at;
};

struct supervisor_state {
  std::vector<child> children;
  std::function<void(const std::string&)> give_up;
  prometheus::Counter* restarts = nullptr;
  prometheus::Counter* given_up = nullptr;
};

using supervisor_pointer = supervisor_actor::stateful_pointer<supervisor_state>;

void start_child(supervisor_pointer self, child& c) {
  c.start_at.reset();
  c.running = c.spec.start(self->system());
  self->monitor(caf::actor_cast<caf::actor_addr>(c.running));
}

void on_down(supervisor_pointer self, const caf::down_msg& message) {
  for (auto& c : self->state.children) {
    if (!c.running || message.source != caf::actor_cast<caf::actor_addr>(c.running)) continue;
    c.running = nullptr;
    const auto now = self->clock().now();
    const auto why = self->system().render(message.reason);
    if (const auto pause = c.policy.died(now)) {
      log::warn("actor ended, starting it again",
                {{"actor", c.spec.name}, {"reason", why}, {"pause_ms", pause->count()}});
      self->state.restarts->Increment();
      c.start_at = now + *pause;
      self->delayed_send(self, *pause, tick{});
    } else {
      log::error("actor ends too often, giving up on it", {{"actor", c.spec.name}, {"reason", why}});
      self->state.given_up->Increment();
      if (self->state.give_up) self->state.give_up(c.spec.name);
    }
  }
}

supervisor_actor::behavior_type supervise(supervisor_pointer self, std::vector<child_spec> specs, restart_limits limits,
                                          std::function<void(const std::string&)> give_up, metrics_registry* metrics) {
  self->state.give_up = std::move(give_up);
  self->state.restarts = &metrics->counter("infernex_supervisor_restarts_total", "Actors started again");
  self->state.given_up = &metrics->counter("infernex_supervisor_given_up_total", "Actors that ended too often");
  self->set_down_handler([self](const caf::down_msg& message) { on_down(self, message); });
  self->set_exit_handler([self](const caf::exit_msg& message) {
    for (auto& c : self->state.children)
      if (c.running) self->send_exit(c.running, message.reason);
    self->quit(message.reason);
  });
  for (auto& spec : specs) self->state.children.push_back({std::move(spec), nullptr, restart_policy(limits), {}});
  for (auto& c : self->state.children) start_child(self, c);
  return {
      [self](const get_child& which) -> caf::strong_actor_ptr {
        for (auto& c : self->state.children)
          if (c.spec.name == which.name) return c.running;
        return nullptr;
      },
      [self](tick) {
        const auto now = self->clock().now();
        for (auto& c : self->state.children)
          if (c.start_at && *c.start_at <= now) start_child(self, c);
      },
  };
}

}  // namespace

supervisor_actor spawn_supervisor(caf::actor_system& system, metrics_registry& metrics,
                                  std::vector<child_spec> children, restart_limits limits,
                                  std::function<void(const std::string&)> give_up) {
  return system.spawn(supervise, std::move(children), limits, std::move(give_up), &metrics);
}

bool stop_and_wait(caf::actor_system& system, const caf::strong_actor_ptr& actor, std::chrono::milliseconds deadline) {
  if (!actor) return true;
  caf::scoped_actor waiter{system};
  waiter->monitor(caf::actor_cast<caf::actor>(actor));
  caf::anon_send_exit(caf::actor_cast<caf::actor>(actor), caf::exit_reason::user_shutdown);
  bool ended = false;
  waiter->receive([&ended](const caf::down_msg&) { ended = true; }, caf::after(deadline) >> [] {});
  return ended;
}

}  // namespace infernex
