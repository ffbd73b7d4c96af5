#pragma once

// Every actor interface of InferNex. Read this file and you know the runtime: who owns which changing
// state, and what can be said to whom. Facts travel between processes as messages of `messages/` on the
// bus; an `inbound<T>` is one of them as the bus delivers it. Everything else here is local.

#include <memory>
#include <string>

#include "actors/runtime/bus.hpp"
#include "actors/runtime/caf.hpp"

namespace infernex {

/// Sent by a clock (or a test) to an actor with periodic work.
struct tick {};

/// The bus connection was lost or is back.
struct bus_changed {
  bool connected = false;
};

// --- engine agent: owns one engine's mirror, state and load -------------------------------------------

namespace engine {
struct probe_result;   // what one health probe or metrics scrape found
struct parity_answer;  // what the engine answered to a question of the parity probe
struct event_batch;    // decoded KV events of one batch, or what the listener noticed (gap, reconnect)
}  // namespace engine

using engine_agent_actor = caf::typed_actor<
    // A probe or scrape has ended: may change the engine's state, its load, its epoch.
    caf::reacts_to<std::shared_ptr<const engine::probe_result>>,
    // The engine published KV events: apply them to the mirror, publish the difference.
    caf::reacts_to<std::shared_ptr<const engine::event_batch>>,
    // The engine answered a question of the parity probe: put the next one, or announce what is wrong.
    caf::reacts_to<std::shared_ptr<const engine::parity_answer>>,
    // Somebody has just started and does not know the engines yet: announce now.
    caf::reacts_to<inbound<fb::AnnounceRequest>>,
    // An indexer asks for the whole mirror: answer it in chunks.
    caf::reacts_to<inbound<fb::KvSnapshotRequest>>,
    // The bus came back: announce again.
    caf::reacts_to<bus_changed>,
    // Announce in turn (2 s unless configured).
    caf::reacts_to<tick>>;

// --- indexer: owns the KV index -------------------------------------------------------------------------

using indexer_actor = caf::typed_actor<
    // An engine exists, and its mirror has this sequence and digest: ask for a snapshot if ours differs.
    caf::reacts_to<inbound<fb::EngineAnnounce>>,
    // An engine's set of blocks changed.
    caf::reacts_to<inbound<fb::KvDelta>>,
    // A part of a snapshot we asked for.
    caf::reacts_to<inbound<fb::KvSnapshotChunk>>,
    // How much of these chains does each engine cache? Answered on the reply subject.
    caf::reacts_to<inbound<fb::KvMatchQuery>>,
    // The bus was lost or came back.
    caf::reacts_to<bus_changed>,
    // Expire silent engines and unanswered snapshot requests.
    caf::reacts_to<tick>>;

// --- router: owns the fleet (topology and load board) ----------------------------------------------------

namespace router {
struct match_result;    // the indexer's answer (or failure) for the items of one query
struct scheduler_spec;  // how requests are placed: plugins and the profiles that use them
}  // namespace router

using router_actor = caf::typed_actor<
    // An engine exists, changed state, or went away.
    caf::reacts_to<inbound<fb::EngineAnnounce>>,
    // An engine's own view of its load.
    caf::reacts_to<inbound<fb::EngineLoad>>,
    // A gateway's totals in flight, and what it has finished.
    caf::reacts_to<inbound<fb::RequestLife>>,
    // Diagnosis says what an accelerator is fit for: its engines are left out, taken less, or take requests again.
    caf::reacts_to<inbound<fb::Verdict>>,
    // Place these requests. Asks the indexer first where the strategy wants overlaps.
    caf::reacts_to<inbound<fb::RouteQuery>>,
    // The indexer has answered, or has not in time: decide now.
    caf::reacts_to<std::shared_ptr<const router::match_result>>,
    // The configuration file has changed: the next decision is made by this.
    caf::reacts_to<std::shared_ptr<const router::scheduler_spec>>,
    // The bus was lost: silence no longer counts against engines. It is back: ask for announcements.
    caf::reacts_to<bus_changed>,
    // Expire silence, publish the decisions since the last tick.
    caf::reacts_to<tick>>;

// --- gateway: owns its fleet snapshot and the life-cycle reports; the I/O threads are its hands ----------

namespace gateway {
/// An I/O thread has put starts, first tokens or ends of requests into the inbox, which outlives the actor.
struct life_waiting {};
}  // namespace gateway

using gateway_actor = caf::typed_actor<
    // An engine exists, changed state, or went away.
    caf::reacts_to<inbound<fb::EngineAnnounce>>,
    // An engine's own view of its load.
    caf::reacts_to<inbound<fb::EngineLoad>>,
    // Other gateways' totals, for decisions taken here.
    caf::reacts_to<inbound<fb::RequestLife>>,
    // A router is there, or goes: all gateways ask the same one for a model.
    caf::reacts_to<inbound<fb::RouterAnnounce>>,
    // As for the router, for decisions taken here.
    caf::reacts_to<inbound<fb::Verdict>>,
    // A PD group's proxy is there: pairs of that group are sent to it.
    caf::reacts_to<inbound<fb::PdState>>,
    // Take what happened to requests from the inbox: goes into RequestLife, and into predictions.
    caf::reacts_to<gateway::life_waiting>,
    // As for the router.
    caf::reacts_to<bus_changed>,
    // Publish the totals that changed, and all of them once a second; expire silent engines.
    caf::reacts_to<tick>>;

// --- PD-group proxy: owns the group's membership and breakers; the I/O threads read its views -----------------

namespace proxy {
struct pair_outcome;  // how a request at a pair ended
struct probe_result;  // whether an engine that nobody announces is healthy
struct group_change;  // what an operator wants changed, over HTTP
}  // namespace proxy

using proxy_actor = caf::typed_actor<
    // An engine of some group exists, changed state, or was started anew.
    caf::reacts_to<inbound<fb::EngineAnnounce>>,
    // An operator takes engines into the group or out of it. Answered on the reply subject.
    caf::reacts_to<inbound<fb::PdControl>>,
    // The same over HTTP; answered by a call-back.
    caf::reacts_to<std::shared_ptr<const proxy::group_change>>,
    // A request at a pair has failed, or worked where one had failed: its breaker.
    caf::reacts_to<std::shared_ptr<const proxy::pair_outcome>>,
    // A listed engine has answered its probe, or has not.
    caf::reacts_to<std::shared_ptr<const proxy::probe_result>>,
    // The bus was lost: silence no longer counts. It is back: ask for announcements.
    caf::reacts_to<bus_changed>,
    // Expire silence and breakers' pauses, publish the group's state.
    caf::reacts_to<tick>>;

// --- monitor: owns the readers of a node's devices, or what stands for them ----------------------------------

using monitor_actor = caf::typed_actor<
    // Publish what the devices say, and set their readers to work again.
    caf::reacts_to<tick>>;

// --- diagnosis: owns the rules' state of every device, and the verdicts ----------------------------------------

namespace diagnosis {
struct knowledge;  // what it knows: rules and tables of codes
}  // namespace diagnosis

using diagnosis_actor = caf::typed_actor<
    // A node's devices at one moment.
    caf::reacts_to<inbound<fb::HwSample>>,
    // Something happened to a device or its node.
    caf::reacts_to<inbound<fb::HwEvent>>,
    // What a node has.
    caf::reacts_to<inbound<fb::HwInventory>>,
    // The knowledge base has changed: judge by this from now on.
    caf::reacts_to<std::shared_ptr<const diagnosis::knowledge>>,
    // The bus was lost: silence proves nothing. It is back.
    caf::reacts_to<bus_changed>,
    // Notice silence, say again what stands.
    caf::reacts_to<tick>>;

// --- supervisor: owns the children of a process -----------------------------------------------------------

/// Give the supervisor's current child of that name, or null while it is down.
struct get_child {
  std::string name;
};

using supervisor_actor = caf::typed_actor<
    // The strong handle of a running child.
    caf::replies_to<get_child>::with<caf::strong_actor_ptr>,
    // Start children whose back-off has passed.
    caf::reacts_to<tick>>;

}  // namespace infernex

INFERNEX_ACTOR_MESSAGE(infernex::tick)
INFERNEX_ACTOR_MESSAGE(infernex::bus_changed)
INFERNEX_ACTOR_MESSAGE(infernex::get_child)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::AnnounceRequest>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::EngineAnnounce>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::EngineLoad>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::KvDelta>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::KvSnapshotRequest>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::KvSnapshotChunk>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::KvMatchQuery>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::RouteQuery>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::RequestLife>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::RouterAnnounce>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::PdState>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::Verdict>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::engine::probe_result>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::engine::event_batch>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::engine::parity_answer>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::router::match_result>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::router::scheduler_spec>)
INFERNEX_ACTOR_MESSAGE(infernex::gateway::life_waiting)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::PdControl>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::proxy::group_change>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::proxy::pair_outcome>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::proxy::probe_result>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::HwSample>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::HwEvent>)
INFERNEX_ACTOR_MESSAGE(infernex::inbound<infernex::fb::HwInventory>)
INFERNEX_ACTOR_MESSAGE(std::shared_ptr<const infernex::diagnosis::knowledge>)
