#include "actors/proxy/actor.hpp"

#include "actors/proxy/group_state.hpp"
#include "actors/proxy/news_pace.hpp"
#include "actors/runtime/ask_announcements.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/metrics.hpp"

namespace infernex::proxy {
namespace {

/// At silence and at breakers; ticks are more frequent, for the news.
constexpr std::chrono::milliseconds look_interval{1'000};

struct proxy_state {
  std::shared_ptr<proxy_facts> facts;
  bus* messages = nullptr;
  bool bus_is_there = false;
  news_pace pace;
  std::optional<clock_point> looked;
  prometheus::Counter* openings = nullptr;
  prometheus::Counter* refused = nullptr;
  prometheus::Gauge* prefills = nullptr;
  prometheus::Gauge* decodes = nullptr;
  prometheus::Gauge* open_pairs = nullptr;
  prometheus::Gauge* in_flight = nullptr;
  std::vector<subscription> subscriptions;
  std::shared_ptr<void> connection_watch;
};

using pointer = proxy_actor::stateful_pointer<proxy_state>;

std::unique_ptr<fb::OriginT> next_origin(proxy_facts& facts) {
  auto origin = std::make_unique<fb::OriginT>();
  origin->id = facts.source;
  origin->epoch = facts.epoch;
  origin->sequence = ++facts.sequence;
  return origin;
}

fb::PdStateT state_of(proxy_facts& facts, const group_view& view, clock_point now) {
  auto state = describe(view, now);
  state.origin = next_origin(facts);
  state.group = facts.members.settings().name;
  state.url = facts.url();
  state.in_flight = facts.in_flight;
  state.answered = facts.answered;
  state.failed = facts.failed;
  state.prefilled_locally = facts.prefilled_locally;
  state.migrated = facts.migrated;
  return state;
}

/// To the bus.
void tell(pointer self, const group_view& view, clock_point now) {
  auto& s = self->state;
  auto& facts = *s.facts;
  catch_up(*s.openings, static_cast<double>(facts.members.breakers().opened()));
  catch_up(*s.refused, static_cast<double>(facts.members.refused()));
  s.prefills->Set(static_cast<double>(view.usable(fb::EngineRole::Prefill)));
  s.decodes->Set(static_cast<double>(view.usable(fb::EngineRole::Decode)));
  s.open_pairs->Set(static_cast<double>(std::count_if(view.pairs.begin(), view.pairs.end(),
                                                      [](const auto& p) { return p.breaker != fb::Breaker::Closed; })));
  s.in_flight->Set(facts.in_flight);
  const auto state = state_of(facts, view, now);
  const auto sent = s.messages->publish(s.messages->names().pd_state(state.group), encode(state), lane::rpc);
  if (sent == errc::none || sent == errc::bus_down) return;
  static log::limiter failures;
  if (const auto repeated = failures.admit())
    log::warn("state of the group not sent", {{"error", name(sent)}, {"repeated", repeated}});
}

/// To the I/O threads at once, to the bus as often as it may be.
void on_change(pointer self) {
  auto& s = self->state;
  const auto view = s.facts->members.view();
  s.facts->view.publish(view);
  const auto now = self->clock().now();
  if (s.pace.on_change(now)) tell(self, *view, now);
}

void on_tick(pointer self) {
  auto& s = self->state;
  const auto now = self->clock().now();
  if (!s.looked || now - *s.looked >= look_interval) {
    s.looked = now;
    if (s.facts->members.on_tick(now, s.bus_is_there)) on_change(self);
  }
  if (s.pace.on_time(now)) tell(self, *s.facts->members.view(), now);
  self->delayed_send(self, news_pace::least, tick{});
}

error change(group& members, fb::PdAction action, fb::EngineRole role, std::string_view engine) {
  if (action == fb::PdAction::Add) return members.add(role, engine);
  return action == fb::PdAction::Remove ? members.remove(role, engine) : members.drain(role, engine);
}

error change_all(pointer self, fb::PdAction action, fb::EngineRole role, const std::vector<std::string>& engines) {
  error first;
  for (const auto& engine : engines) {
    auto problem = change(self->state.facts->members, action, role, engine);
    log::info("group changed by an operator", {{"action", fb::EnumNamePdAction(action)},
                                               {"role", fb::EnumNameEngineRole(role)},
                                               {"engine", engine},
                                               {"problem", problem.code == errc::none ? "" : render(problem)}});
    if (first.code == errc::none) first = std::move(problem);
  }
  on_change(self);
  return first;
}

void on_control(pointer self, const inbound<fb::PdControl>& m) {
  auto& s = self->state;
  std::vector<std::string> engines;
  if (const auto* named = m.message->engines()) {
    for (const auto* one : *named) engines.emplace_back(text(one));
  }
  error problem{errc::invalid_request, "role must be Prefill or Decode"};
  if (m.message->role() != fb::EngineRole::Aggregated)
    problem = change_all(self, m.message->action(), m.message->role(), engines);
  fb::PdControlReplyT reply;
  reply.origin = next_origin(*s.facts);
  if (problem.code != errc::none) reply.problem = render(problem);
  const auto view = s.facts->members.view();
  reply.prefill_instances = view->addresses(fb::EngineRole::Prefill);
  reply.decode_instances = view->addresses(fb::EngineRole::Decode);
  s.messages->reply(m, message_traits<fb::PdControlReply>::root, encode(reply));
}

template <class T>
void listen(pointer self, const subject<T>& to, const subscribe_options& options) {
  auto me = caf::actor_cast<proxy_actor>(self);
  auto made = self->state.messages->subscribe(to, options,
                                              [me](inbound<T>&& message) { caf::anon_send(me, std::move(message)); });
  if (made)
    self->state.subscriptions.push_back(*std::move(made));
  else  // the supervisor tries again
    self->quit(caf::make_error(caf::sec::runtime_error, render(made.failure())));
}

proxy_actor::behavior_type run(pointer self, std::shared_ptr<proxy_facts> facts, bus* messages,
                               metrics_registry* metrics, std::uint32_t credit) {
  auto& s = self->state;
  s.facts = std::move(facts);
  s.messages = messages;
  s.openings = &metrics->counter("infernex_proxy_breaker_openings_total", "Pairs put aside after failures in a row");
  s.refused = &metrics->counter("infernex_proxy_announcements_refused_total",
                                "Announcements without a usable address, or over the bound of engines");
  s.prefills =
      &metrics->gauge("infernex_proxy_ready_engines", "Engines of the group that take requests", {{"role", "prefill"}});
  s.decodes =
      &metrics->gauge("infernex_proxy_ready_engines", "Engines of the group that take requests", {{"role", "decode"}});
  s.in_flight = &metrics->gauge("infernex_proxy_in_flight_requests", "Requests being answered");
  s.open_pairs = &metrics->gauge("infernex_proxy_open_pairs", "Pairs put aside now");
  const auto& names = messages->names();
  listen(self, names.any_announce(), {lane::rpc, {}, credit});
  listen(self, names.pd_control(s.facts->members.settings().name), {lane::rpc, {}, 64});
  auto me = caf::actor_cast<proxy_actor>(self);
  s.connection_watch = messages->watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
  self->delayed_send(self, news_pace::least, tick{});
  return {
      [self](const inbound<fb::EngineAnnounce>& m) {
        if (self->state.facts->members.on_announce(*m.message, m.received_at)) on_change(self);
      },
      [self](const inbound<fb::PdControl>& m) { on_control(self, m); },
      [self](const std::shared_ptr<const group_change>& m) {
        m->done(change_all(self, m->action, m->role, m->engines));
      },
      [self](const std::shared_ptr<const pair_outcome>& m) {
        const auto now = self->clock().now();
        if (self->state.facts->members.on_outcome(m->prefill, m->decode, m->worked, now)) on_change(self);
      },
      [self](const std::shared_ptr<const probe_result>& m) {
        if (self->state.facts->members.on_probe(m->address, m->healthy)) on_change(self);
      },
      [self](const bus_changed& m) {
        auto& own = self->state;
        own.bus_is_there = m.connected;
        if (m.connected) ask_announcements(*own.messages, own.facts->source, own.facts->epoch);
      },
      [self](tick) { on_tick(self); },
  };
}

}  // namespace

proxy_actor spawn_proxy_actor(const runtime& process, const settings& how, std::shared_ptr<proxy_facts> facts) {
  return process.system.spawn(run, std::move(facts), &process.messages, &process.metrics, how.announce_credit);
}

}  // namespace infernex::proxy
