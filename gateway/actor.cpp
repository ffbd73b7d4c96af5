#include "gateway/actor.hpp"

#include "actors/runtime/ask_announcements.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex::gateway {
namespace {

constexpr std::chrono::milliseconds heartbeat{1'000};

struct gateway_state {
  std::shared_ptr<gateway_facts> facts;
  prometheus::Counter* facts_refused = nullptr;
  prometheus::Counter* life_dropped = nullptr;
  bus* messages = nullptr;
  std::chrono::milliseconds life_interval{20};
  /// When the next regular tick is due, and whether an earlier one is under way for fresh totals.
  clock_point next_heartbeat;
  bool report_soon = false;
  std::vector<subscription> subscriptions;
  std::shared_ptr<void> connection_watch;
};

using gateway_pointer = gateway_actor::stateful_pointer<gateway_state>;

void tell(const std::vector<router::fleet_event>& events) {
  for (const auto& e : events) {
    log::info("engine changed", {{"model", e.model},
                                 {"instance", e.instance},
                                 {"from", fb::EnumNameEngineState(e.from)},
                                 {"to", fb::EnumNameEngineState(e.to)},
                                 {"reason", e.reason}});
  }
}

template <class T>
void listen(gateway_pointer self, const subject<T>& to, lane via) {
  auto me = caf::actor_cast<gateway_actor>(self);
  auto made = self->state.messages->subscribe(to, {via, {}, 4096},
                                              [me](inbound<T>&& message) { caf::anon_send(me, std::move(message)); });
  if (made) {
    self->state.subscriptions.push_back(*std::move(made));
  } else {
    // The supervisor tries again.
    self->quit(caf::make_error(caf::sec::runtime_error, render(made.failure())));
  }
}

void on_tick(gateway_pointer self) {
  auto& s = self->state;
  const auto now = self->clock().now();
  s.report_soon = false;
  const bool regular = now >= s.next_heartbeat;
  publish_life(*s.facts, *s.messages, regular, now);
  if (!regular) return;
  tell(s.facts->fleet.on_tick(now));
  catch_up(*s.facts_refused, static_cast<double>(s.facts->fleet.refused()));
  catch_up(*s.life_dropped, static_cast<double>(s.facts->requests.dropped()));
  s.next_heartbeat = now + heartbeat;
  self->delayed_send(self, heartbeat, tick{});
}

gateway_actor::behavior_type run(gateway_pointer self, std::shared_ptr<gateway_facts> facts, bus* messages,
                                 metrics_registry* metrics, std::chrono::milliseconds life_interval) {
  auto& s = self->state;
  s.facts_refused =
      &metrics->counter("infernex_gateway_facts_refused_total", "Announcements and totals refused for a bound");
  s.life_dropped = &metrics->counter("infernex_gateway_life_dropped_total",
                                     "Records and changes left out of life messages for a bound");
  s.facts = std::move(facts);
  s.messages = messages;
  s.life_interval = life_interval;
  s.next_heartbeat = self->clock().now() + heartbeat;
  listen(self, messages->names().any_announce(), lane::rpc);
  listen(self, messages->names().any_load(), lane::stream);
  listen(self, messages->names().any_request_life(), lane::stream);
  auto me = caf::actor_cast<gateway_actor>(self);
  s.connection_watch = messages->watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
  self->delayed_send(self, heartbeat, tick{});
  return {
      [self](const inbound<fb::EngineAnnounce>& m) {
        tell(self->state.facts->fleet.on_announce(*m.message, m.received_at));
      },
      [self](const inbound<fb::EngineLoad>& m) { self->state.facts->fleet.on_load(*m.message, m.received_at); },
      [self](const inbound<fb::RequestLife>& m) {
        auto& f = *self->state.facts;
        f.fleet.on_life(*m.message, m.received_at, f.requests.source());
      },
      [self](const std::shared_ptr<const life_events>& events) {
        auto& state = self->state;
        state.facts->requests.apply(*events, self->clock().now());
        if (state.report_soon) return;
        state.report_soon = true;
        self->delayed_send(self, state.life_interval, tick{});
      },
      [self](const bus_changed& change) {
        auto& f = *self->state.facts;
        f.fleet.on_bus(change.connected, self->clock().now());
        if (change.connected) ask_announcements(*self->state.messages, f.requests.source(), f.requests.epoch());
      },
      [self](tick) { on_tick(self); },
  };
}

}  // namespace

void publish_life(gateway_facts& facts, bus& to, bool all, clock_point now) {
  for (const auto& message : facts.requests.take(all, now)) {
    const auto sent = to.publish(to.names().request_life(message.model), encode(message), lane::stream);
    if (sent == errc::none) continue;
    static log::limiter failures;
    if (const auto repeated = failures.admit(now)) {
      log::warn("request totals not sent", {{"error", name(sent)}, {"repeated", repeated}});
    }
  }
}

gateway_actor spawn_gateway_actor(const runtime& process, std::shared_ptr<gateway_facts> facts,
                                  std::chrono::milliseconds life_interval) {
  return process.system.spawn(run, std::move(facts), &process.messages, &process.metrics, life_interval);
}

}  // namespace infernex::gateway
