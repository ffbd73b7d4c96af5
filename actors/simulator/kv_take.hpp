#pragma once

#include "actors/simulator/kv_transfer.hpp"

namespace infernex::simulator {

/// KV that has come: blocks held in the engine, to be released once the sequence they came for holds them itself.
struct kv_taken {
  /// 0: none, the prompt is to be computed here.
  sequence_id held = 0;
  std::uint32_t tokens = 0;
};

/// The decode engine's side: takes memory for the prompt, then gets its KV, by a pull from the prefill engine or, layer
/// by layer, by asking a metaserver for someone who pushes it. Bounded by kv_transfer.timeout; if it fails (and at the
/// client's leaving) the prefill engine is told that its blocks are not wanted any more. All arguments live until it
/// returns. Errors: timed_out, cancelled, unreachable, connection_lost, not_found.
http::task<result<kv_taken>> take_kv(kv_transfer& transfer, transfer_call& call, const kv_transfer_request& from,
                                     std::string request_id, std::vector<token_id> prompt, std::string salt);

/// One prompt of a request, and what the engine knows it by.
struct kv_wanted {
  kv_transfer_request from;
  std::string request_id;
  std::vector<token_id> prompt;
};

/// The same for all prompts of a request, at once: a proxy asks for their prefill when it has heard of all of them. All
/// or none.
http::task<result<std::vector<kv_taken>>> take_all_kv(kv_transfer& transfer, transfer_call& call,
                                                      std::vector<kv_wanted> wanted, std::string salt);

}  // namespace infernex::simulator
