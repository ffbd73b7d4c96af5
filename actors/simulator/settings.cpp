#include "actors/simulator/settings.hpp"

#include <algorithm>
#include <cmath>

namespace infernex::simulator {

std::optional<error> check(const settings& values) {
  const auto wrong = [](std::string detail) { return error{errc::invalid_config, std::move(detail)}; };
  if (values.model.empty()) return wrong("model: a name");
  if (values.block_size == 0 || values.block_size > 4'096) return wrong("block_size: 1 to 4096 tokens");
  if (values.total_blocks == 0) return wrong("total_blocks: at least 1");
  if (values.max_model_len < 2 || context_length(values) < 2) return wrong("max_model_len: at least 2 tokens");
  if (values.max_num_seqs == 0) return wrong("max_num_seqs: at least 1");
  // Every running sequence must be able to decode in every step.
  if (values.max_num_batched_tokens < values.max_num_seqs)
    return wrong("max_num_batched_tokens: at least max_num_seqs");
  if (!(values.speed > 0) || !std::isfinite(values.speed)) return wrong("speed: above 0");
  if (!(values.eos_probability >= 0 && values.eos_probability <= 1)) return wrong("eos_probability: 0 to 1");
  if (values.default_max_tokens == 0U) return wrong("default_max_tokens: at least 1");
  if (values.load_time.count() < 0) return wrong("load_time: not negative");
  if (values.kv_events.enabled && values.kv_events.endpoint.empty()) return wrong("kv_events.endpoint: an address");
  if (values.kv_events.hwm == 0) return wrong("kv_events.hwm: at least 1");
  const auto& transfer = values.kv_transfer;
  if (!(transfer.bandwidth_gbps > 0) || !std::isfinite(transfer.bandwidth_gbps))
    return wrong("kv_transfer.bandwidth_gbps: above 0");
  if (transfer.lease.count() <= 0) return wrong("kv_transfer.lease: above 0");
  if (transfer.timeout.count() <= 0) return wrong("kv_transfer.timeout: above 0");
  if (transfer.latency.count() < 0) return wrong("kv_transfer.latency: not negative");
  // Its requests do not say which half they want.
  if (transfer.protocol == transfer_protocol::sglang && transfer.role == transfer_role::both)
    return wrong("kv_transfer.role: prefill or decode with sglang");
  const auto& costs = values.costs;
  for (double number : {costs.prefill_quadratic, costs.prefill_linear, costs.prefill_constant, costs.decode_quadratic,
                        costs.decode_linear, costs.decode_constant, costs.decode_floor}) {
    if (!std::isfinite(number)) return wrong("step_costs: finite numbers");
  }
  return std::nullopt;
}

const std::string& served_name(const settings& values) {
  return values.served_model_names.empty() ? values.model : values.served_model_names.front();
}

bool serves(const settings& values, const std::string& model) {
  const auto& names = values.served_model_names;
  return names.empty() ? model == values.model : std::find(names.begin(), names.end(), model) != names.end();
}

std::uint32_t context_length(const settings& values) {
  const auto memory = std::uint64_t{values.total_blocks} * values.block_size;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(values.max_model_len, memory));
}

}  // namespace infernex::simulator
