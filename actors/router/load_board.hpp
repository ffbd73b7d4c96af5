#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/router/topology.hpp"

namespace infernex::router {

using clock_point = std::chrono::steady_clock::time_point;

/// How fast an endpoint answers, as measured from outside.
struct learned_speed {
  /// Time to first token = ttft_base_ms + tokens to prefill before it (its own and those ahead) * ms_a_token.
  std::optional<float> ttft_base_ms;
  std::optional<float> prefill_ms_a_token;
  /// Time per output token = tpot_base_ms + active blocks * tpot_ms_a_block.
  std::optional<float> tpot_base_ms;
  std::optional<float> tpot_ms_a_block;
  /// Recent means.
  std::optional<float> ttft_ms;
  std::optional<float> tpot_ms;
  std::optional<float> output_tokens;
};

/// What is known of one endpoint's load at one moment.
struct load_reading {
  /// From the engine's metrics; absent until measured, and again when older than the board's limit.
  std::optional<std::uint32_t> running;
  std::optional<std::uint32_t> waiting;
  std::optional<double> kv_usage;
  std::optional<std::chrono::milliseconds> age;
  /// Requests and prompt tokens not yet prefilled that gateways have in flight there, reservations included.
  /// All saturate at 2^32 - 1.
  std::uint32_t in_flight = 0;
  std::uint64_t prefill_tokens = 0;
  /// By how many `in_flight` has grown since the engine was measured.
  std::int64_t placed_since = 0;
  /// KV blocks that those requests' prompts and answers take, by the routers' own count.
  std::uint64_t active_blocks = 0;
  /// Learned from requests that were answered there (speed_book); absent until some were.
  learned_speed speed;
};

/// What a placed request adds to its endpoint until it is released; the prompt tokens go at its first token.
struct load_share {
  std::uint32_t requests = 1;
  std::uint64_t prefill_tokens = 0;
  std::uint64_t blocks = 0;
};

/// Loads of all endpoints: a fixed number of atomic cells, read and written by any thread without a lock.
/// Slots are handed out by the fleet (one writer); an operation with a stale generation does nothing, and
/// reads as nothing known. A reading is not one instant: its values may be a report apart.
class load_board {
 public:
  explicit load_board(std::uint32_t slots = 4096, std::chrono::milliseconds max_age = std::chrono::seconds(10));
  ~load_board();

  /// Errors as nullopt: every slot is taken. Writer only.
  std::optional<slot_ref> acquire();
  /// Writer only.
  void release(slot_ref slot);

  load_reading read(slot_ref slot, clock_point now) const;
  void report(slot_ref slot, std::optional<std::uint32_t> running, std::optional<std::uint32_t> waiting,
              std::optional<double> kv_usage, clock_point now);
  void learn(slot_ref slot, const learned_speed& speed);
  /// The sum of what other gateways say they have in flight.
  void set_remote(slot_ref slot, load_share total);
  /// This process's own decisions: counted at once, taken back when the request's end (or its gateway's
  /// total) makes them known.
  void reserve(slot_ref slot, load_share share);
  void unreserve(slot_ref slot, load_share share);

 private:
  struct cell;
  struct owner {
    std::uint32_t generation = 0;
    std::uint32_t next_free = 0;
  };

  std::unique_ptr<cell[]> cells_;
  std::vector<owner> owners_;  // writer only
  std::uint32_t count_;
  std::uint32_t next_free_ = 0;
  std::chrono::milliseconds max_age_;
};

}  // namespace infernex::router
