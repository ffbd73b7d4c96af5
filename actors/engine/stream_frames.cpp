#include "actors/engine/stream_frames.hpp"

#include <limits>
#include <string>

namespace infernex::engine {

namespace {

constexpr std::uint64_t end_of_replay = std::numeric_limits<std::uint64_t>::max();

result<wire_batch> batch_of(frame sequence, frame payload) {
  if (sequence.size() != 8)
    return error{errc::malformed_input, "a sequence of " + std::to_string(sequence.size()) + " bytes, not 8"};
  wire_batch batch;
  for (const auto byte : sequence) batch.sequence = batch.sequence << 8 | byte;
  batch.payload = payload;
  return batch;
}

}  // namespace

result<wire_batch> parse_live(std::span<const frame> frames) {
  if (frames.size() != 3)
    return error{errc::malformed_input, "a KV event message of " + std::to_string(frames.size()) + " frames, not 3"};
  return batch_of(frames[1], frames[2]);
}

result<wire_batch> parse_replayed(std::span<const frame> frames) {
  // Delimiter, [topic,] sequence, payload. A ROUTER that omits the delimiter leaves the other frames alike.
  const auto count = frames.size();
  if (count < 2 || count > 4)
    return error{errc::malformed_input, "a replay answer of " + std::to_string(count) + " frames, not 3 or 4"};
  auto batch = batch_of(frames[count - 2], frames[count - 1]);
  if (batch && (batch->payload.empty() || batch->sequence == end_of_replay)) batch->end = true;
  return batch;
}

std::vector<std::uint8_t> replay_request(std::uint64_t sequence) {
  std::vector<std::uint8_t> bytes(8);
  for (int i = 7; i >= 0; --i, sequence >>= 8) bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(sequence);
  return bytes;
}

}  // namespace infernex::engine
