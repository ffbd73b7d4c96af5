#include <algorithm>

#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

namespace {

void read_costs(config::section at, simulator::step_costs& into) {
  at.read("prefill_quadratic", into.prefill_quadratic, -1, 1)
      .read("prefill_linear", into.prefill_linear, 0, 1e3)
      .read("prefill_constant", into.prefill_constant, 0, 1e6)
      .read("decode_quadratic", into.decode_quadratic, -1e6, 1e6)
      .read("decode_linear", into.decode_linear, -1e6, 1e6)
      .read("decode_constant", into.decode_constant, 0, 1e6)
      .read("decode_floor", into.decode_floor, 0, 1e6);
}

void read_events(config::section at, simulator::kv_event_settings& into) {
  at.read("enabled", into.enabled)
      .read("endpoint", into.endpoint)
      .read("replay_endpoint", into.replay_endpoint)
      .read("topic", into.topic)
      .read_choice("encoding", into.encoding,
                   {{"array", simulator::event_encoding::array}, {"map", simulator::event_encoding::map}})
      .read_choice("replay_framing", into.framing,
                   {{"old", simulator::replay_framing::old_4_frames}, {"new", simulator::replay_framing::new_5_frames}})
      .read("buffer_steps", into.buffer_steps, 1, 10'000'000)
      .read("hwm", into.hwm, 1, 10'000'000);
}

void read_transfer(config::section at, simulator::kv_transfer_settings& into) {
  using simulator::stale_engine_policy;
  using simulator::transfer_failure_policy;
  using simulator::transfer_protocol;
  using simulator::transfer_role;
  at.read_choice("protocol", into.protocol,
                 {{"none", transfer_protocol::none},
                  {"nixl", transfer_protocol::nixl},
                  {"mooncake", transfer_protocol::mooncake},
                  {"ascend", transfer_protocol::ascend},
                  {"ascend-layerwise", transfer_protocol::ascend_layerwise},
                  {"sglang", transfer_protocol::sglang}})
      .read_choice(
          "role", into.role,
          {{"both", transfer_role::both}, {"prefill", transfer_role::prefill}, {"decode", transfer_role::decode}})
      .read("engine_id", into.engine_id)
      .read("host", into.host)
      .read("bootstrap_port", into.bootstrap_port, 0, 65'535)
      .read("side_channel_port", into.side_channel_port, 0, 65'535)
      .read("bandwidth_gbps", into.bandwidth_gbps, 1e-6, 1e6)
      .read("bytes_per_token", into.bytes_per_token, 0, 1'000'000'000)
      .read("latency", into.latency, 0ms, 1h)
      .read("lease", into.lease, 1ms, 1h)
      .read("timeout", into.timeout, 1ms, 1h)
      .read_choice("on_failure", into.on_failure,
                   {{"fail", transfer_failure_policy::fail}, {"recompute", transfer_failure_policy::recompute}})
      .read_choice("stale_engine", into.stale_engine,
                   {{"time-out", stale_engine_policy::time_out},
                    {"fail", stale_engine_policy::fail},
                    {"hang", stale_engine_policy::hang}});
}

}  // namespace

void read_simulator(config::section at, simulator::settings& into) {
  at.read("model", into.model)
      .read("served_model_names", into.served_model_names)
      .read("instance", into.instance)
      .read("address", into.address)
      .read("port", into.port, 0, 65'535)
      .read("block_size", into.block_size, 1, 4096)
      .read("total_blocks", into.total_blocks, 1, 100'000'000)
      .read("max_model_len", into.max_model_len, 2, 10'000'000)
      .read("max_num_seqs", into.max_num_seqs, 1, 65'536)
      .read("max_num_batched_tokens", into.max_num_batched_tokens, 1, 10'000'000)
      .read("max_waiting", into.max_waiting, 0, 1'000'000)
      .read("speed", into.speed, 0.001, 1e6)
      .read_choice("mode", into.mode,
                   {{"random", simulator::generation_mode::random}, {"echo", simulator::generation_mode::echo}})
      .read("seed", into.seed, 0, UINT64_MAX)
      .read("eos_probability", into.eos_probability, 0, 1)
      .read("default_max_tokens", into.default_max_tokens, 1, 10'000'000)
      .read("load_time", into.load_time, 0ms, 1h)
      .read("render_endpoints", into.render_endpoints)
      .read("tokenize_endpoints", into.tokenize_endpoints)
      .read("faults", into.faults);
  read_costs(at.below("step_costs"), into.costs);
  read_events(at.below("kv_events"), into.kv_events);
  read_transfer(at.below("kv_transfer"), into.kv_transfer);
  // The detail reads `key: what would be right`.
  if (const auto wrong = simulator::check(into)) {
    const auto colon = std::min(wrong->detail.find(": "), wrong->detail.size());
    at.complain(wrong->detail.substr(0, colon), wrong->detail.substr(std::min(colon + 2, wrong->detail.size())));
  }
}

}  // namespace infernex::nodes
