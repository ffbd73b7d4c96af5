#pragma once

// Every spelling that CAF 0.18 or later changes sits here, and nothing else includes CAF headers of
// message traits directly: moving to another CAF is a change of this file (docs/adr/0001).

#include <chrono>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

/// Makes a type a message between actors of this process. Nothing is ever serialised by CAF: the bus is
/// the only wire.
#define INFERNEX_ACTOR_MESSAGE(Type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Type)

namespace infernex {

/// The scheduler settings measured to idle at no cost (docs/adr/0001): few threads, sharing policy.
struct actor_config : caf::actor_system_config {
  explicit actor_config(std::size_t threads = 2) {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", threads);
  }
};

}  // namespace infernex
