#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "messages/result.hpp"

namespace infernex::engine {

using frame = std::span<const std::uint8_t>;

/// One batch on the wire: published live, or repeated by the replay socket.
struct wire_batch {
  std::uint64_t sequence = 0;
  frame payload;
  /// The replay's end marker; sequence and payload mean nothing then.
  bool end = false;
};

/// A message of the publisher's PUB socket: topic, sequence (8 bytes, big-endian), payload.
/// Errors: malformed_input.
result<wire_batch> parse_live(std::span<const frame> frames);

/// A message of the publisher's replay socket as a DEALER gets it. vLLM left the topic out before 0.26, and
/// SGLang still does: told apart by the number of frames. Errors: malformed_input.
result<wire_batch> parse_replayed(std::span<const frame> frames);

/// The 8 bytes that ask for every batch from `sequence` on (sent after an empty frame).
std::vector<std::uint8_t> replay_request(std::uint64_t sequence);

}  // namespace infernex::engine
