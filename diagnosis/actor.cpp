#include "diagnosis/actor.hpp"

#include "actors/runtime/log.hpp"
#include "monitor/device_sample.hpp"

namespace infernex::diagnosis {
namespace {

constexpr std::chrono::milliseconds tick_interval{1'000};

struct diagnosis_state {
  std::shared_ptr<diagnosis_facts> facts;
  bus* messages = nullptr;
  bool bus_is_there = false;
  /// What turns the steady clock into milliseconds since 1970; fixed at the start, so that time never goes back.
  millis offset = 0;
  millis next_repeat = 0;
  monitor::node_sample scratch;
  std::vector<subscription> subscriptions;
  std::shared_ptr<void> connection_watch;
};

using pointer = diagnosis_actor::stateful_pointer<diagnosis_state>;

millis count_of(auto at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

millis time_of(pointer self, std::chrono::steady_clock::time_point at) { return self->state.offset + count_of(at); }

void send(pointer self, const verdict& what) {
  auto& s = self->state;
  auto message = to_message(what, s.facts->rules.at(what.who.node, what.who.device));
  message.origin = std::make_unique<fb::OriginT>();
  message.origin->id = s.facts->source;
  message.origin->epoch = s.facts->epoch;
  message.origin->sequence = ++s.facts->sequence;
  const auto sent =
      s.messages->publish(s.messages->names().verdict(what.who.node, what.who.device), encode(message), lane::rpc);
  if (sent == errc::none) return;
  ++s.facts->not_sent;  // what stands is told again
  static log::limiter failures;
  if (const auto repeated = failures.admit())
    log::warn("verdict not sent", {{"error", name(sent)}, {"repeated", repeated}});
}

void tell_changes(pointer self) {
  for (const auto& one : self->state.facts->rules.take_changes()) {
    log::info("verdict", {{"state", fb::EnumNameVerdictState(one->state)},
                          {"device", place_of(*one)},
                          {"severity", name(one->grade)},
                          {"action", name(one->act)},
                          {"rule", one->rule},
                          {"id", one->id},
                          {"suppressed_by", one->suppressed_by}});
    send(self, *one);
  }
}

/// A node may speak for itself only.
bool speaks_for_itself(pointer self, const std::string& subject, std::string_view node) {
  const auto names = self->state.messages->names().parse(subject);
  if (names && names->model == node) return true;
  ++self->state.facts->impostors;
  return false;
}

void on_tick(pointer self) {
  auto& s = self->state;
  auto& facts = *s.facts;
  const auto now = time_of(self, std::chrono::steady_clock::now());
  facts.rules.on_tick(now, s.bus_is_there);
  tell_changes(self);
  if (facts.repeat.count() > 0 && now >= s.next_repeat) {
    s.next_repeat = now + facts.repeat.count();
    for (const auto& one : facts.rules.book().all_standing()) send(self, *one);
  }
  facts.metrics.update(facts.rules, facts.impostors, facts.not_sent);
  facts.report.publish(
      std::make_shared<const fleet_report>(make_report(facts.rules, static_cast<std::uint64_t>(now) * 1'000'000)));
  self->delayed_send(self, tick_interval, tick{});
}

template <class T>
void listen(pointer self, const subject<T>& to, const subscribe_options& options) {
  auto me = caf::actor_cast<diagnosis_actor>(self);
  auto made = self->state.messages->subscribe(to, options,
                                              [me](inbound<T>&& message) { caf::anon_send(me, std::move(message)); });
  if (made)
    self->state.subscriptions.push_back(*std::move(made));
  else  // the supervisor tries again
    self->quit(caf::make_error(caf::sec::runtime_error, render(made.failure())));
}

diagnosis_actor::behavior_type run(pointer self, std::shared_ptr<diagnosis_facts> facts, bus* messages,
                                   std::uint32_t sample_credit, std::uint32_t event_credit) {
  auto& s = self->state;
  s.facts = std::move(facts);
  s.messages = messages;
  s.offset = count_of(std::chrono::system_clock::now()) - count_of(std::chrono::steady_clock::now());
  const auto& names = messages->names();
  // Events may not be lost behind samples: they have a credit of their own.
  listen(self, names.any_hw_sample(), {lane::stream, {}, sample_credit});
  listen(self, names.any_hw_event(), {lane::stream, {}, event_credit});
  listen(self, names.any_hw_inventory(), {lane::stream, {}, event_credit});
  auto me = caf::actor_cast<diagnosis_actor>(self);
  s.connection_watch = messages->watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
  self->send(self, tick{});
  return {
      [self](const inbound<fb::HwSample>& m) {
        auto& own = self->state;
        if (!speaks_for_itself(self, m.subject, text(m.message->node()))) return;
        monitor::unpack(*m.message, own.scratch);
        own.facts->rules.on_sample(own.scratch, time_of(self, m.received_at));
        tell_changes(self);
      },
      [self](const inbound<fb::HwEvent>& m) {
        if (!speaks_for_itself(self, m.subject, text(m.message->node()))) return;
        fb::HwEventT event;
        m.message->UnPackTo(&event);
        self->state.facts->rules.on_event(event, time_of(self, m.received_at));
        tell_changes(self);
      },
      [self](const inbound<fb::HwInventory>& m) {
        if (!speaks_for_itself(self, m.subject, text(m.message->node()))) return;
        fb::HwInventoryT inventory;
        m.message->UnPackTo(&inventory);
        self->state.facts->rules.on_inventory(inventory, time_of(self, m.received_at));
        tell_changes(self);
      },
      [self](const std::shared_ptr<const knowledge>& m) {
        log::info("knowledge base read anew", {{"edition", m->edition}, {"rules", m->rules.size()}});
        self->state.facts->rules.reload(m, time_of(self, std::chrono::steady_clock::now()));
        tell_changes(self);
      },
      [self](const bus_changed& m) { self->state.bus_is_there = m.connected; },
      [self](tick) { on_tick(self); },
  };
}

}  // namespace

diagnosis_actor spawn_diagnosis_actor(const runtime& process, const settings& how,
                                      std::shared_ptr<diagnosis_facts> facts) {
  return process.system.spawn(run, std::move(facts), &process.messages, how.sample_credit, how.event_credit);
}

}  // namespace infernex::diagnosis
