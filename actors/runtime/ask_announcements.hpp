#pragma once

#include <cstdint>
#include <string_view>

#include "messages/errc.hpp"

namespace infernex {

class bus;

/// Asks every agent to announce its engine now. For a part that has just subscribed, or whose bus is back: it
/// would otherwise know an engine only from that engine's next announcement in turn, up to 2 s later. Goes out
/// on the rpc connection, behind the subscription to announcements.
errc ask_announcements(bus& messages, std::string_view source, std::uint64_t epoch);

}  // namespace infernex
