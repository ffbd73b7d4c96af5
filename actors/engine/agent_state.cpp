#include "actors/engine/agent_state.hpp"

#include <zmq.hpp>

#include "actors/engine/unprobed.hpp"
#include "actors/runtime/log.hpp"

namespace infernex::engine {

namespace {

template <class Table, class Message>
void publish(agent_state& state, const subject<Table>& to, const Message& message) {
  // Announcements follow deltas on one connection, so that what they say of the deltas has arrived before.
  if (state.world->process.messages.publish(to, encode(message), lane::stream) != errc::none)
    state.metrics->unsent.Increment();
}

}  // namespace

void publish_deltas(agent_state& state) {
  const auto& names = state.world->process.messages.names();
  for (const auto& delta : state.book->take_deltas()) {
    publish(state, names.kv_delta(delta.model, delta.instance), delta);
    state.metrics->deltas.Increment();
  }
}

void announce(agent_state& state) {
  publish_deltas(state);
  auto message = state.book->announcement();
  if (!message) return;
  say_unroutable(state.engine, *message);
  publish(state, state.world->process.messages.names().announce(message->model, message->instance), *message);
  state.metrics->announcements.Increment();
}

void publish_load(agent_state& state, const fb::EngineLoadT& load) {
  publish(state, state.world->process.messages.names().load(load.model, load.instance), load);
}

void on_parity(agent_state& state, const parity_run::ended& verdict) {
  if (!verdict) return;
  state.metrics->on_parity(verdict->fault);
  if (verdict->problem.empty())
    log::info("parity probe finds nothing wrong", {{"instance", state.engine.instance}});
  else
    log::warn("parity probe: " + verdict->problem, {{"instance", state.engine.instance}});
  // An engine that could not be asked is not one that was found wrong.
  const bool wrong = verdict->fault != parity_fault::not_probed;
  if (state.book->set_parity_problem(wrong ? verdict->problem : std::string())) announce(state);
}

}  // namespace infernex::engine
