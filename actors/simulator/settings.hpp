#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/errc.hpp"

namespace infernex::simulator {

/// random: the next token follows from seed, model and all preceding tokens. echo: the answer is the last
/// user text.
enum class generation_mode : std::uint8_t { random, echo };

/// How vLLM spells a KV event: positional array (up to 0.23) or tagged map (from 0.24).
enum class event_encoding : std::uint8_t { array, map };

/// A replay reply without (up to 0.25) or with (from 0.26) the topic frame.
enum class replay_framing : std::uint8_t { old_4_frames, new_5_frames };

/// How long a step takes, in milliseconds. The formulas and their defaults are those of Dynamo's mocker:
///   prefill(t) = quadratic t^2 + linear t + constant, t = new prompt tokens of the step; 0 for t = 0
///   decode(p)  = max(floor, quadratic p^2 + linear p + constant), p = KV tokens attended / KV capacity
struct step_costs {
  double prefill_quadratic = 4.209989e-07;
  double prefill_linear = 1.518344e-02;
  double prefill_constant = 16.50142;
  double decode_quadratic = -25.74;
  double decode_linear = 54.01;
  double decode_constant = 5.74;
  double decode_floor = 1.0;
};

struct kv_event_settings {
  bool enabled = true;
  /// Both sockets are bound. Port 0 takes a free one.
  std::string endpoint = "tcp://127.0.0.1:0";
  /// Empty: no replay.
  std::string replay_endpoint = "tcp://127.0.0.1:0";
  std::string topic;
  event_encoding encoding = event_encoding::map;
  replay_framing framing = replay_framing::new_5_frames;
  /// Batches kept for replay.
  std::uint32_t buffer_steps = 10'000;
  /// Batches waiting for a subscriber, and for the publisher's thread: over it they are dropped.
  std::uint32_t hwm = 100'000;
};

/// How KV gets from a prefill engine to a decode engine, by the connector whose parameters are spoken.
enum class transfer_protocol : std::uint8_t { none, nixl, mooncake, ascend, ascend_layerwise, sglang };
enum class transfer_role : std::uint8_t { both, prefill, decode };
/// What a decode engine does when the KV does not come: end the request with an error, or compute it itself.
enum class transfer_failure_policy : std::uint8_t { fail, recompute };
/// What becomes of a transfer from an engine id that is no more: fails when its time is over, at once, or never ends.
enum class stale_engine_policy : std::uint8_t { time_out, fail, hang };

struct kv_transfer_settings {
  transfer_protocol protocol = transfer_protocol::none;
  transfer_role role = transfer_role::both;
  /// Empty: drawn at random at every start.
  std::string engine_id;
  /// What other engines reach this one by; empty: the address it listens on.
  std::string host;
  /// Of the second listener: the bootstrap port with mooncake and sglang, else the side channel's, which is told in
  /// kv_transfer_params. 0 takes a free one.
  std::uint16_t bootstrap_port = 0;
  std::uint16_t side_channel_port = 0;
  /// A transfer takes latency + bytes / bandwidth, at speed 1; one after the other.
  double bandwidth_gbps = 200;
  std::uint32_t bytes_per_token = 131'072;
  std::chrono::milliseconds latency{2};
  /// Prefill: for how long blocks are held for a decode engine that does not come.
  std::chrono::milliseconds lease{30'000};
  /// Decode: for how long it waits for memory and for the KV.
  std::chrono::milliseconds timeout{30'000};
  transfer_failure_policy on_failure = transfer_failure_policy::fail;
  stale_engine_policy stale_engine = stale_engine_policy::time_out;

  /// Which of the two ports is listened on.
  bool has_bootstrap() const {
    return protocol == transfer_protocol::mooncake || protocol == transfer_protocol::sglang;
  }
  /// A decode engine of these kinds gives a request back when its memory runs out.
  bool gives_back() const {
    return role == transfer_role::decode &&
           (protocol == transfer_protocol::ascend || protocol == transfer_protocol::ascend_layerwise);
  }
};

/// One simulated engine.
struct settings {
  std::string model = "sim/llama";
  /// Names clients may use; empty: the model's own. The first is reported.
  std::vector<std::string> served_model_names;
  /// For logs.
  std::string instance = "sim-0";
  std::string address = "127.0.0.1";
  /// 0 takes a free one.
  std::uint16_t port = 0;

  /// Tokens a block, blocks of KV memory.
  std::uint32_t block_size = 16;
  std::uint32_t total_blocks = 8'192;
  /// Prompt and answer together; never more than the KV memory holds.
  std::uint32_t max_model_len = 32'768;
  /// Sequences that run at once; tokens a step; sequences that may wait (over it: 429).
  std::uint32_t max_num_seqs = 256;
  std::uint32_t max_num_batched_tokens = 8'192;
  std::uint32_t max_waiting = 10'000;
  step_costs costs;
  /// 10 = ten times faster than the formulas say.
  double speed = 1.0;

  generation_mode mode = generation_mode::random;
  /// Engines of equal seed and model answer alike, which is what lets a request move between them.
  std::uint64_t seed = 0;
  /// Chance that the next token ends the answer.
  double eos_probability = 1.0 / 64;
  /// Of chat requests that set none; unset: what the context leaves, as in vLLM.
  std::optional<std::uint32_t> default_max_tokens;

  /// Every endpoint answers 503 for this long after the start.
  std::chrono::milliseconds load_time{0};
  kv_event_settings kv_events;
  kv_transfer_settings kv_transfer;
  /// /sim/faults and /sim/state answer.
  bool faults = false;
  /// Off as in engines too old to have them.
  bool render_endpoints = true;
  bool tokenize_endpoints = true;
};

/// The first thing wrong with the settings (errc::invalid_config), if any.
std::optional<error> check(const settings& values);

/// The name answers carry.
const std::string& served_name(const settings& values);
/// Whether clients may ask for this name.
bool serves(const settings& values, const std::string& model);
/// Longest sequence: max_model_len, or the KV memory if that is smaller.
std::uint32_t context_length(const settings& values);

}  // namespace infernex::simulator
