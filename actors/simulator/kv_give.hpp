#pragma once

#include "actors/simulator/kv_transfer.hpp"

namespace infernex::simulator {

/// The prefill engine's side of a computed prompt whose reader is waited for before the request is answered:
/// layer-wise it is pushed, as if since `started` while it was computed; SGLang's answer comes when it has been read.
/// Nothing for the other protocols. `reader`: has listened since the prompt was offered; null: it was not. Errors:
/// timed_out, cancelled, unreachable, connection_lost, not_found.
http::task<error> hand_over_kv(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& to,
                               const awaited_entry* reader, std::uint32_t prompt_tokens,
                               kv_transfer::clock::time_point started);

/// What other engines (and proxies: the bootstrap server's /query) ask on the second listener.
http::task<void> handle_peer(kv_transfer& transfer, const http::request& in, http::responder& out);

}  // namespace infernex::simulator
