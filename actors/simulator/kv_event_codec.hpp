#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/simulator/kv_event.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

// vLLM's KV events on the wire: what `vllm/distributed/kv_events.py` publishes.

struct batch_options {
  /// Seconds since 1970.
  double timestamp = 0;
  std::uint32_t data_parallel_rank = 0;
  std::uint32_t block_size = 16;
  event_encoding encoding = event_encoding::map;
};

/// One msgpack batch `[timestamp, [event…], rank]`.
std::string encode_batch(std::span<const kv_event> events, const batch_options& options);

/// 8 bytes, big-endian.
std::string sequence_frame(std::uint64_t sequence);
/// What a replay request asks for; nothing if the frame is not 8 bytes.
std::optional<std::uint64_t> parse_sequence_frame(std::string_view frame);

/// One message of a replay reply as the asking side receives it (the identity frame left out).
std::vector<std::string> replay_reply(replay_framing framing, std::string_view topic, std::uint64_t sequence,
                                      std::string_view payload);
/// The reply's last message: sequence -1, empty payload.
std::vector<std::string> replay_end(replay_framing framing);

}  // namespace infernex::simulator
