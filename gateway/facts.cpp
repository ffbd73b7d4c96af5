#include "actors/runtime/log.hpp"
#include "gateway/actor.hpp"

namespace infernex::gateway {

void call_waiting(gateway_facts& facts, clock_point now) {
  if (!facts.room.empty()) facts.room.call(facts.topology.get(), facts.fleet.board(), now);
}

void take_events(gateway_facts& facts, clock_point now) {
  auto events = facts.inbox.take();
  facts.requests.apply(events, now);
  for (auto& r : events.routed) facts.routed.routed(r.request_id, r.model, r.mode, r.instance, std::move(r.keys), now);
  for (const auto& f : events.finished) {
    facts.routed.finished(f.record.request_id, router::computed_by(f.computed_at, f.record.status), now);
    facts.cached_tokens.note(f);
    const auto answered = router::speed_result_of(f.record);
    if (!answered) continue;
    if (f.met_at_prefill) facts.speeds.learn(*f.met_at_prefill, {answered->ttft_ms, {}, {}});
    if (f.met && f.met_at_prefill) facts.speeds.learn(*f.met, {{}, answered->decode_ms, answered->output_tokens});
    if (f.met && !f.met_at_prefill) facts.speeds.learn(*f.met, *answered);
  }
}

void publish_life(gateway_facts& facts, bus& to, bool all, clock_point now) {
  for (auto& message : facts.requests.take(all, now)) {
    const auto send = [&] { return to.publish(to.names().request_life(message.model), encode(message), lane::stream); };
    auto sent = send();
    if (sent == errc::too_large) {
      // Put back, the records would make the next one too large as well.
      facts.requests.drop_records(message);
      sent = send();
    }
    if (sent == errc::none) continue;
    facts.requests.put_back(std::move(message));
    static log::limiter failures;
    if (const auto repeated = failures.admit(now)) {
      log::warn("request totals not sent", {{"error", name(sent)}, {"repeated", repeated}});
    }
  }
}

}  // namespace infernex::gateway
