#include "gateway/actor.hpp"

#include "actors/router/fleet_words.hpp"
#include "actors/runtime/ask_announcements.hpp"
#include "actors/runtime/log.hpp"
#include "gateway/metrics.hpp"

namespace infernex::gateway {
namespace {

struct {
  void info(std::string_view event, std::initializer_list<log::field> of) const { log::info(event, of); }
  void warn(std::string_view event, std::initializer_list<log::field> of) const { log::warn(event, of); }
} constexpr log_lines;

constexpr std::chrono::milliseconds heartbeat{1'000};

struct gateway_state {
  std::shared_ptr<gateway_facts> facts;
  std::optional<fact_metrics> metrics;
  bus* messages = nullptr;
  std::chrono::milliseconds life_interval{20};
  /// When the next regular tick is due, and whether an earlier one is under way for fresh totals.
  clock_point next_heartbeat;
  bool report_soon = false;
  bool bus_is_there = false;
  std::vector<subscription> subscriptions;
  std::shared_ptr<void> connection_watch;
};

using gateway_pointer = gateway_actor::stateful_pointer<gateway_state>;

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

/// Predictions follow the engines, and end with time.
void tend_predictions(gateway_facts& facts, clock_point now) {
  const auto* topology = facts.topology.get();
  if (topology->version != facts.followed) facts.predicted.follow(*topology);
  facts.followed = topology->version;
  facts.predicted.expire(now);
  facts.routed.expire(now);
}

template <class T>
std::uint64_t epoch_of(const T& message) {
  return message.origin() ? message.origin()->epoch() : 0;
}

void show_routers(gateway_facts& facts) {
  facts.router_names.publish(std::make_shared<const std::vector<std::string>>(facts.routers.names()));
}

void show_proxies(gateway_facts& facts) {
  facts.proxies.publish(std::make_shared<const pd_proxies>(facts.pd_groups.words()));
}

void on_events(gateway_pointer self) {
  auto& s = self->state;
  take_events(*s.facts, self->clock().now());
  call_waiting(*s.facts, std::chrono::steady_clock::now());
  if (s.report_soon || !s.facts->requests.changed()) return;
  s.report_soon = true;
  self->delayed_send(self, s.life_interval, tick{});
}

void on_tick(gateway_pointer self) {
  auto& s = self->state;
  const auto now = self->clock().now();
  s.report_soon = false;
  const bool regular = now >= s.next_heartbeat;
  take_events(*s.facts, now);
  tend_predictions(*s.facts, now);
  publish_life(*s.facts, *s.messages, regular, now);
  if (!regular) return;
  router::tell(log_lines, s.facts->fleet.on_tick(now));
  router::tell(log_lines, s.facts->fleet.take_health_events());
  if (s.facts->routers.expire(now)) show_routers(*s.facts);
  if (s.facts->pd_groups.expire(now)) show_proxies(*s.facts);
  if (s.facts->pairs) s.facts->pairs->on_tick(now, s.bus_is_there);
  call_waiting(*s.facts, std::chrono::steady_clock::now());
  s.metrics->show(*s.facts);
  s.next_heartbeat = now + heartbeat;
  self->delayed_send(self, heartbeat, tick{});
}

gateway_actor::behavior_type run(gateway_pointer self, std::shared_ptr<gateway_facts> facts, bus* messages,
                                 metrics_registry* metrics, std::chrono::milliseconds life_interval) {
  auto& s = self->state;
  s.metrics.emplace(*metrics);
  s.facts = std::move(facts);
  s.messages = messages;
  s.life_interval = life_interval;
  s.next_heartbeat = self->clock().now() + heartbeat;
  listen(self, messages->names().any_announce(), lane::rpc);
  listen(self, messages->names().any_load(), lane::stream);
  listen(self, messages->names().any_request_life(), lane::stream);
  listen(self, messages->names().any_router_announce(), lane::rpc);
  listen(self, messages->names().any_verdict(), lane::rpc);
  listen(self, messages->names().any_pd_state(), lane::stream);
  auto me = caf::actor_cast<gateway_actor>(self);
  s.connection_watch = messages->watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
  self->delayed_send(self, heartbeat, tick{});
  // What an earlier incarnation was woken for and did not take.
  self->send(self, life_waiting{});
  return {
      [self](const inbound<fb::EngineAnnounce>& m) {
        auto& f = *self->state.facts;
        // Before a request can be routed to the engine.
        if (f.pairs) f.pairs->on_announce(*m.message, m.received_at);
        router::tell(log_lines, f.fleet.on_announce(*m.message, m.received_at));
        tend_predictions(f, m.received_at);
      },
      [self](const inbound<fb::EngineLoad>& m) {
        auto& f = *self->state.facts;
        f.fleet.on_load(*m.message, m.received_at);
        call_waiting(f, std::chrono::steady_clock::now());
      },
      [self](const inbound<fb::RequestLife>& m) {
        auto& f = *self->state.facts;
        f.fleet.on_life(*m.message, m.received_at, f.requests.source());
      },
      [self](const inbound<fb::RouterAnnounce>& m) {
        auto& f = *self->state.facts;
        const auto name = text(m.message->router());
        const auto changed = m.message->leaving()
                                 ? f.routers.on_leave(name, epoch_of(*m.message))
                                 : f.routers.on_announce(name, {}, epoch_of(*m.message), m.received_at);
        if (changed) show_routers(f);
      },
      [self](const inbound<fb::Verdict>& m) { self->state.facts->fleet.on_verdict(*m.message, m.received_at); },
      [self](const inbound<fb::PdState>& m) {
        auto& f = *self->state.facts;
        const auto url = text(m.message->url());
        if (f.pd_groups.on_announce(url.empty() ? url : text(m.message->group()), url, epoch_of(*m.message),
                                    m.received_at))
          show_proxies(f);
      },
      [self](life_waiting) { on_events(self); },
      [self](const bus_changed& change) {
        auto& f = *self->state.facts;
        self->state.bus_is_there = change.connected;
        f.fleet.on_bus(change.connected, self->clock().now());
        if (change.connected) ask_announcements(*self->state.messages, f.requests.source(), f.requests.epoch());
      },
      [self](tick) { on_tick(self); },
  };
}

}  // namespace

gateway_actor spawn_gateway_actor(const runtime& process, std::shared_ptr<gateway_facts> facts,
                                  std::chrono::milliseconds life_interval) {
  return process.system.spawn(run, std::move(facts), &process.messages, &process.metrics, life_interval);
}

}  // namespace infernex::gateway
