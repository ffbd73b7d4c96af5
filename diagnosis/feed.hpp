#pragma once

#include <cstdint>
#include <span>

#include "diagnosis/engine.hpp"
#include "messages/result.hpp"

namespace infernex::diagnosis {

/// Gives a recorded message (a sample, an event or an inventory) to the engine. Errors: wrong_message_type (another
/// kind), malformed_message.
error feed(engine& into, std::span<const std::uint8_t> message, millis now);

}  // namespace infernex::diagnosis
