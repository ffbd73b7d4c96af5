#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "actors/engine/kv_event.hpp"
#include "messages/result.hpp"

namespace infernex::engine {

/// Largest batch accepted, in bytes.
inline constexpr std::size_t max_batch_bytes = 16 << 20;

/// Reads one msgpack batch of KV events as vLLM (every version so far) and SGLang publish them. It goes by
/// shape, not by version: envelope and events may each be an array or a map, even mixed in one batch; trailing
/// elements may be missing or unknown, block hashes may be integers or digests (then their last 8 bytes, big-endian,
/// which is how vLLM shortens a digest itself). An event that cannot be read is left out and counted; the others of its
/// batch are not lost. Errors: malformed_input (not msgpack, or no list of events), too_large.
result<kv_event_batch> decode_kv_events(std::span<const std::uint8_t> payload);

/// The publisher of a batch, where it names one; cheap where it does not. For who must know before the batch is
/// decoded.
std::optional<publisher_id> find_publisher(std::span<const std::uint8_t> payload);

}  // namespace infernex::engine
