#include "actors/engine/actor.hpp"

#include <functional>
#include <string>
#include <utility>

#include <zmq.hpp>

#include "actors/engine/agent_state.hpp"
#include "actors/engine/unprobed.hpp"
#include "actors/runtime/http/server.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::engine {

namespace {

/// Snapshot requests that may wait; each answer is the whole mirror.
constexpr std::uint32_t snapshot_credit = 16;
/// Newcomers that may ask at once; what is shed is answered by the announcement in turn.
constexpr std::uint32_t announce_credit = 64;

using agent_pointer = engine_agent_actor::stateful_pointer<agent_state>;

/// What comes on the subject goes into the actor's mailbox.
template <class Table>
subscription accept(agent_pointer self, const subject<Table>& from, std::uint32_t credit) {
  auto taken = self->state.world->process.messages.subscribe(
      from, {lane::rpc, {}, credit},
      [to = engine_agent_actor(self)](inbound<Table>&& request) { caf::anon_send(to, std::move(request)); });
  if (taken) return *std::move(taken);
  log::error("cannot answer requests",
             {{"instance", self->state.engine.instance}, {"subject", from.name}, {"problem", render(taken.failure())}});
  return {};
}

/// Indexers may ask for the mirror as soon as the model, and so the subject, is known; newcomers for the announcement
/// at any time.
void accept_requests(agent_pointer self) {
  auto& state = self->state;
  const auto& names = state.world->process.messages.names();
  if (!state.announce_requests) state.announce_requests = accept(self, names.announce_request(), announce_credit);
  if (!state.snapshots && !state.book->model().empty())
    state.snapshots = accept(self, names.kv_snapshot(state.book->model(), state.engine.instance), snapshot_credit);
}

void on_probe(agent_pointer self, const probe_result& probe) {
  auto& state = self->state;
  const auto orders = state.book->on_probe(probe);
  const auto& engine = state.book->engine();
  if (orders.state_changed)
    log::info("engine is " + std::string(fb::EnumNameEngineState(engine.state())),
              {{"instance", state.engine.instance},
               {"model", state.book->model()},
               {"reason", engine.reason()},
               {"epoch", engine.epoch().value_or(0)}});
  accept_requests(self);
  if (orders.resync && state.listener) state.listener->resync(state.book->generation());
  if (orders.load) publish_load(state, *orders.load);
  if (orders.announce) announce(state);
  on_parity(state, state.parity->follow(*state.book, state.engine, self->clock().now()));
  state.metrics->on_probe(probe);
  state.metrics->follow(*state.book);
}

void on_events(agent_state& state, const event_batch& group, parity_run::time_point now) {
  const auto before = state.book->kv_health();
  const bool changed = state.book->on_events(group);
  publish_deltas(state);
  if (changed) announce(state);
  if (const auto health = state.book->kv_health(); health != before)
    log::info("KV events are " + std::string(fb::EnumNameKvHealth(health)),
              {{"instance", state.engine.instance}, {"keys", state.book->keys()}});
  on_parity(state, state.parity->on_events(group, now));
  state.metrics->on_events(group);
  state.metrics->follow(*state.book);
}

void on_snapshot_request(agent_state& state, const inbound<fb::KvSnapshotRequest>& request) {
  publish_deltas(state);
  for (const auto& chunk : state.book->snapshot())
    if (state.world->process.messages.reply(request, "KvSnapshotChunk", encode(chunk)) != errc::none)
      state.metrics->unsent.Increment();
  state.metrics->snapshots.Increment();
}

void attach_to_engine(agent_pointer self, std::uint64_t epoch) {
  auto& state = self->state;
  const auto& world = *state.world;
  const engine_agent_actor me(self);
  if (!state.engine.kv_events.empty()) {
    listener_settings listening{state.engine.instance, state.engine.kv_events,   state.engine.kv_replay,
                                state.engine.kv_topic, world.options->kv_stream, world.options->max_pending_groups};
    state.listener = std::make_unique<kv_listener>(
        world.zmq, std::move(listening),
        [me](std::shared_ptr<const event_batch> group) { caf::anon_send(me, std::move(group)); });
  }
  if (state.engine.url.empty()) {
    caf::anon_send(me, std::make_shared<const probe_result>(presumed_ready(epoch, self->clock().now())));
  } else {
    state.probes = std::make_unique<prober>(
        world.threads, world.options, state.engine,
        [me](std::shared_ptr<const probe_result> probe) { caf::anon_send(me, std::move(probe)); });
    state.parity_calls = std::make_unique<parity_caller>(
        world.threads, state.engine,
        [me](std::shared_ptr<const parity_answer> answer) { caf::anon_send(me, std::move(answer)); });
  }
  const auto seed = epoch ^ std::hash<std::string>{}(state.engine.instance);
  state.parity.emplace(world.options->parity_probe, seed,
                       [calls = state.parity_calls.get(), limit = world.options->parity_timeout](
                           std::uint64_t probe, http_call question) { calls->ask(probe, std::move(question), limit); });
  state.bus_watch =
      world.process.messages.watch_connection([me](bool connected) { caf::anon_send(me, bus_changed{connected}); });
}

engine_agent_actor::behavior_type engine_agent(agent_pointer self, std::shared_ptr<const agent_world> world,
                                               const engine_descriptor& engine, std::uint64_t epoch) {
  auto& state = self->state;
  state.engine = engine;
  const auto& options = *world->options;
  state.book.emplace(ledger_settings{engine, options.health, epoch, options.max_blocks, options.canonical_block_size,
                                     options.message_keys});
  state.metrics.emplace(world->process.metrics, engine.instance);
  state.world = std::move(world);
  attach_to_engine(self, epoch);
  accept_requests(self);
  self->delayed_send(self, options.announce_interval, tick{});
  return {
      [self](const std::shared_ptr<const probe_result>& probe) { on_probe(self, *probe); },
      [self](const std::shared_ptr<const event_batch>& group) { on_events(self->state, *group, self->clock().now()); },
      [self](const std::shared_ptr<const parity_answer>& got) {
        on_parity(self->state, self->state.parity->on_answer(got->probe, got->status, got->body, self->clock().now()));
      },
      [self](const inbound<fb::AnnounceRequest>&) { announce(self->state); },
      [self](const inbound<fb::KvSnapshotRequest>& request) { on_snapshot_request(self->state, request); },
      [self](bus_changed change) {
        if (change.connected) announce(self->state);
      },
      [self](tick) {
        self->delayed_send(self, self->state.world->options->announce_interval, tick{});
        announce(self->state);
      },
  };
}

}  // namespace

engine_agent_actor spawn_agent(std::shared_ptr<const agent_world> world, const engine_descriptor& engine,
                               std::uint64_t epoch) {
  auto& system = world->process.system;
  return system.spawn(engine_agent, std::move(world), engine, epoch);
}

}  // namespace infernex::engine
