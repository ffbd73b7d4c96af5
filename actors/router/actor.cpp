#include "actors/router/actor.hpp"

#include <unordered_map>

#include "actors/router/answers.hpp"
#include "actors/router/fleet_words.hpp"
#include "actors/router/overlap_source.hpp"
#include "actors/router/presence.hpp"
#include "actors/runtime/ask_announcements.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::router {
namespace {

struct {
  void info(std::string_view event, std::initializer_list<log::field> of) const { log::info(event, of); }
  void warn(std::string_view event, std::initializer_list<log::field> of) const { log::warn(event, of); }
} constexpr log_lines;

/// Decisions reach their watchers, and silence is noticed, within this time.
constexpr std::chrono::milliseconds tick_interval{20};

struct router_state {
  std::shared_ptr<router_facts> facts;
  bus* messages = nullptr;
  settings how;
  std::vector<subscription> subscriptions;
  std::shared_ptr<void> connection_watch;
  struct pending {
    inbound<fb::RouteQuery> query;
    clock_point asked_at;
  };
  /// Queries whose question is with the indexer; each of them is completed in the source's time-out.
  std::unordered_map<std::uint64_t, pending> waiting;
  std::uint64_t next_query = 1;
  std::optional<answers> say;
  std::optional<overlap_source> overlaps;
  std::optional<presence> here;
};

using pointer = router_actor::stateful_pointer<router_state>;

template <class T>
void listen(pointer self, const subject<T>& to, const subscribe_options& options) {
  auto me = caf::actor_cast<router_actor>(self);
  auto made = self->state.messages->subscribe(to, options,
                                              [me](inbound<T>&& message) { caf::anon_send(me, std::move(message)); });
  if (made)
    self->state.subscriptions.push_back(*std::move(made));
  else  // the supervisor tries again
    self->quit(caf::make_error(caf::sec::runtime_error, render(made.failure())));
}

void on_query(pointer self, inbound<fb::RouteQuery>&& query) {
  auto& s = self->state;
  if (query.message->items() && query.message->items()->size() > s.how.max_items)
    return s.say->refuse(query.reply_to, errc::too_large);
  auto question = s.facts->places.question(*query.message);
  if (!question) return s.say->give(query, nullptr, "no question to the indexer");
  if (s.waiting.size() >= s.how.max_pending) return s.say->refuse(query.reply_to, errc::overloaded);
  const auto number = s.next_query++;
  question->origin = s.say->next_origin();
  s.waiting.emplace(number, router_state::pending{std::move(query), std::chrono::steady_clock::now()});
  auto me = caf::actor_cast<router_actor>(self);
  s.overlaps->ask(*question, [me, number](result<view<fb::KvMatchReply>>&& reply) {
    caf::anon_send(me, std::make_shared<const match_result>(match_result{number, std::move(reply)}));
  });
}

void on_match(router_state& s, const match_result& found) {
  const auto it = s.waiting.find(found.query);
  if (it == s.waiting.end()) return;
  const auto pending = std::move(it->second);
  s.waiting.erase(it);
  s.facts->metrics.match_seconds.Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - pending.asked_at).count());
  if (found.answer) return s.say->give(pending.query, &found, {});
  const auto why = found.answer.failure().code;
  s.facts->metrics.match_failures(why).Increment();
  s.say->give(pending.query, nullptr,
              why == errc::timed_out
                  ? "the indexer did not answer in " + std::to_string(s.overlaps->timeout().count()) + " ms"
                  : "the indexer: " + std::string(describe(why)));
}

/// Something has changed that may have made room for who waits.
void let_go(router_state& s) {
  if (s.facts->queue.waiting() != 0) s.say->give(s.facts->queue.release(std::chrono::steady_clock::now()));
}

void on_tick(pointer self) {
  auto& s = self->state;
  auto& facts = *s.facts;
  const auto now = self->clock().now();
  s.say->publish();
  s.here->on_tick(now);
  tell(log_lines, facts.engines.on_tick(now));
  tell(log_lines, facts.engines.take_health_events());
  facts.places.on_tick(now);
  s.say->give(facts.queue.on_tick(std::chrono::steady_clock::now()));
  facts.metrics.show(facts.queue);
  const auto size = facts.places.fleet_size();
  facts.metrics.engines.Set(static_cast<double>(size.known));
  facts.metrics.engines_ready.Set(static_cast<double>(size.ready));
  const auto isolations = facts.engines.isolations();
  facts.metrics.engines_isolated.Set(static_cast<double>(isolations.isolated));
  facts.metrics.isolations_withheld.Set(static_cast<double>(isolations.withheld));
  facts.metrics.in_flight.Set(static_cast<double>(size.in_flight));
  facts.metrics.reservations_open.Set(static_cast<double>(facts.open.open()));
  catch_up(facts.metrics.facts_refused, static_cast<double>(facts.engines.refused()));
  catch_up(facts.metrics.reservations_shed, static_cast<double>(facts.open.shed()));
  facts.metrics.show(facts.predicted.count(), facts.routed);
  self->delayed_send(self, tick_interval, tick{});
}

router_actor::behavior_type run(pointer self, std::shared_ptr<router_facts> facts, bus* messages, settings how) {
  auto& s = self->state;
  s.facts = std::move(facts);
  s.messages = messages;
  s.how = std::move(how);
  s.say.emplace(*messages, s.facts);
  s.overlaps.emplace(*messages, s.how);
  s.here.emplace(*messages, s.facts->name, [&say = *s.say] { return say.next_origin(); });
  const auto& names = messages->names();
  listen(self, names.any_announce(), {lane::rpc, {}, s.how.fact_credit});
  listen(self, names.any_load(), {lane::stream, {}, s.how.fact_credit});
  listen(self, names.any_verdict(), {lane::rpc, {}, s.how.fact_credit});
  listen(self, names.any_request_life(), {lane::stream, {}, s.how.fact_credit});
  listen(self, names.any_route_query(), {lane::rpc, "router", s.how.query_credit});
  listen(self, names.any_route_query_of(s.facts->name), {lane::rpc, {}, s.how.query_credit});
  auto me = caf::actor_cast<router_actor>(self);
  s.connection_watch = messages->watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
  self->delayed_send(self, tick_interval, tick{});
  self->set_exit_handler([self](const caf::exit_msg& message) {
    auto& ending = self->state;
    ending.here->leave();
    ending.subscriptions.clear();  // leaves the queue group first
    for (const auto& [number, query] : ending.waiting) ending.messages->refuse(query.query.reply_to, errc::unreachable);
    for (const auto& reply_to : ending.facts->queue.abandon()) ending.messages->refuse(reply_to, errc::unreachable);
    self->quit(message.reason);
  });
  return {
      [self](const inbound<fb::EngineAnnounce>& m) {
        tell(log_lines, self->state.facts->engines.on_announce(*m.message, m.received_at));
      },
      [self](const inbound<fb::EngineLoad>& m) {
        self->state.facts->engines.on_load(*m.message, m.received_at);
        let_go(self->state);
      },
      [self](const inbound<fb::RequestLife>& m) {
        self->state.facts->engines.on_life(*m.message, m.received_at);
        self->state.facts->places.on_life(*m.message, m.received_at);
        self->state.facts->queue.on_life(*m.message);
        let_go(self->state);
      },
      [self](const inbound<fb::Verdict>& m) { self->state.facts->engines.on_verdict(*m.message, m.received_at); },
      [self](inbound<fb::RouteQuery>& m) { on_query(self, std::move(m)); },
      [self](const std::shared_ptr<const match_result>& m) { on_match(self->state, *m); },
      [self](const std::shared_ptr<const scheduler_spec>& config) { self->state.facts->places.use(*config); },
      [self](const bus_changed& change) {
        auto& known = *self->state.facts;
        known.engines.on_bus(change.connected, self->clock().now());
        if (!change.connected) return;
        self->state.here->announce();
        ask_announcements(*self->state.messages, known.source_id, known.epoch);
      },
      [self](tick) { on_tick(self); },
  };
}

}  // namespace

router_actor spawn_router_actor(const runtime& process, const settings& how, std::shared_ptr<router_facts> facts) {
  return process.system.spawn(run, std::move(facts), &process.messages, how);
}

}  // namespace infernex::router
