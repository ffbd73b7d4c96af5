#include "actors/indexer/actor.hpp"

#include <map>

#include "actors/runtime/ask_announcements.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::indexer {
namespace {

constexpr std::chrono::milliseconds heartbeat{250};
/// How soon a change shows on the page.
constexpr std::chrono::milliseconds page_delay{10};
constexpr std::uint32_t chunk_credit = 512;

struct indexer_state {
  std::shared_ptr<indexer_facts> facts;
  bus* messages = nullptr;
  std::vector<subscription> subscriptions;
  std::shared_ptr<void> connection_watch;
  /// Where the parts of a snapshot under way arrive, by model and instance.
  std::map<std::pair<std::string, std::string>, subscription> snapshots;
  std::uint32_t match_credit = 0;
  time_point next_heartbeat;
  bool page_soon = false;
};

using pointer = indexer_actor::stateful_pointer<indexer_state>;

fb::OriginT next_origin(indexer_facts& facts) {
  fb::OriginT origin;
  origin.id = facts.source_id;
  origin.epoch = facts.epoch;
  origin.sequence = ++facts.sequence;
  return origin;
}

template <class T>
result<subscription> subscribe(pointer self, const subject<T>& to, const subscribe_options& options) {
  auto me = caf::actor_cast<indexer_actor>(self);
  return self->state.messages->subscribe(to, options,
                                         [me](inbound<T>&& message) { caf::anon_send(me, std::move(message)); });
}

template <class T>
void listen(pointer self, const subject<T>& to, const subscribe_options& options) {
  if (auto made = subscribe(self, to, options))
    self->state.subscriptions.push_back(*std::move(made));
  else  // the supervisor tries again
    self->quit(caf::make_error(caf::sec::runtime_error, render(made.failure())));
}

void ask(pointer self, const tracker::requests& wanted) {
  auto& s = self->state;
  for (const auto& one : wanted) {
    const subject<fb::KvSnapshotChunk> inbox{s.messages->new_inbox()};
    auto parts = subscribe(self, inbox, {lane::rpc, {}, chunk_credit});
    fb::KvSnapshotRequestT request;
    request.origin = std::make_unique<fb::OriginT>(next_origin(*s.facts));
    request.model = one.model;
    request.instance = one.instance;
    const auto sent = parts ? s.messages->publish_request(s.messages->names().kv_snapshot(one.model, one.instance),
                                                          encode(request), inbox.name)
                            : parts.failure().code;
    log::info("snapshot requested",
              {{"model", one.model}, {"instance", one.instance}, {"reason", one.reason}, {"sent", name(sent)}});
    if (parts) s.snapshots.insert_or_assign({one.model, one.instance}, *std::move(parts));
  }
}

/// Members of the group share the queries, so a replica that has not caught up stays out of it.
void join_queue_group(pointer self) {
  auto& s = self->state;
  listen(self, s.messages->names().any_kv_match(), {lane::rpc, "indexer", s.match_credit});
}

void show(pointer self, time_point now) {
  auto& facts = *self->state.facts;
  auto page = std::make_shared<index_page>(make_page(facts.sources, *facts.indexes, now));
  if (facts.ready.on_sources(page->sources.size(), waiting_sources(page->sources, facts.engines), now)) {
    log::info("answers match queries from now on", {{"because", facts.ready.reason()}});
    join_queue_group(self);
  }
  page->engines = facts.engines.list();
  page->stale_after = facts.stale_after;
  page->caught_up = facts.ready.caught_up();
  page->caught_up_because = facts.ready.reason();
  indexer_metrics::totals totals{facts.sources.counters(), facts.sources.refused(), facts.sources.forgotten()};
  totals.bytes = facts.indexes->bytes();
  totals.sources = page->sources.size();
  for (const auto& model : page->models) {
    totals.keys += model.distinct_keys;
    totals.keys_refused += model.refused_keys;
  }
  for (const auto& source : page->sources) {
    totals.exact_sources += is_exact(source, facts.engines.find(source.model, source.instance));
    totals.capped_sources += source.state == sync_state::capped;
  }
  facts.metrics.update(totals);
  facts.page.publish(std::move(page));
}

/// After each change: asks for what is missing, and shows the change before long.
void after(pointer self, const tracker::requests& wanted) {
  ask(self, wanted);
  if (std::exchange(self->state.page_soon, true)) return;
  self->delayed_send(self, page_delay, tick{});
}

void on_tick(pointer self) {
  auto& s = self->state;
  const auto now = self->clock().now();
  s.page_soon = false;
  if (now >= s.next_heartbeat) {
    s.facts->engines.on_tick(now);
    ask(self, s.facts->sources.on_tick(now));
    std::erase_if(s.snapshots, [&s](const auto& entry) {
      return !s.facts->sources.awaits_snapshot(entry.first.first, entry.first.second);
    });
    s.next_heartbeat = now + heartbeat;
    self->delayed_send(self, heartbeat, tick{});
  }
  show(self, now);
}

void answer(pointer self, const inbound<fb::KvMatchQuery>& query) {
  auto& s = self->state;
  const auto began = std::chrono::steady_clock::now();
  auto reply = s.facts->sources.match(*query.message, self->clock().now());
  s.facts->metrics.lookup_seconds.Observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  reply.origin = std::make_unique<fb::OriginT>(next_origin(*s.facts));
  const auto sent = s.messages->reply_to(query.reply_to, message_traits<fb::KvMatchReply>::root, encode(reply));
  if (sent == errc::none) return;
  static log::limiter failures;
  if (const auto repeated = failures.admit())
    log::warn("match reply not sent", {{"error", name(sent)}, {"repeated", repeated}});
}

indexer_actor::behavior_type run(pointer self, std::shared_ptr<indexer_facts> facts, bus* messages,
                                 const settings& how) {
  auto& s = self->state;
  s.facts = std::move(facts);
  s.messages = messages;
  const auto& names = messages->names();
  listen(self, names.any_announce(), {lane::rpc, {}, how.announce_credit});
  listen(self, names.any_kv_delta(), {lane::stream, {}, how.delta_credit});
  s.match_credit = how.match_credit;
  if (s.facts->ready.caught_up()) join_queue_group(self);
  auto me = caf::actor_cast<indexer_actor>(self);
  s.connection_watch = messages->watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
  s.next_heartbeat = self->clock().now();
  self->send(self, tick{});
  return {
      [self](const inbound<fb::EngineAnnounce>& m) {
        auto& known = *self->state.facts;
        known.engines.on_announce(*m.message, m.received_at);
        after(self, known.sources.on_announce(*m.message, m.received_at));
      },
      [self](const inbound<fb::KvDelta>& m) {
        after(self, self->state.facts->sources.on_delta(*m.message, m.received_at));
      },
      [self](const inbound<fb::KvSnapshotChunk>& m) {
        after(self, self->state.facts->sources.on_chunk(*m.message, m.received_at));
      },
      [self](const inbound<fb::KvMatchQuery>& m) { answer(self, m); },
      [self](const bus_changed& change) {
        auto& known = *self->state.facts;
        known.ready.on_bus(change.connected, self->clock().now());
        known.engines.on_bus(change.connected, self->clock().now());
        after(self, known.sources.on_bus(change.connected, self->clock().now()));
        if (change.connected) ask_announcements(*self->state.messages, known.source_id, known.epoch);
      },
      [self](tick) { on_tick(self); },
  };
}

}  // namespace

indexer_actor spawn_indexer_actor(const runtime& process, const settings& how, std::shared_ptr<indexer_facts> facts) {
  return process.system.spawn(run, std::move(facts), &process.messages, how);
}

}  // namespace infernex::indexer
