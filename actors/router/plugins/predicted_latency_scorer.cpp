#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// A cost in milliseconds, the least is best: the predicted time to first token, plus what its answer's tokens would
/// take here, plus what it would cost those that are answered here already.
///
///   ttft   = ms_a_token * (tokens to prefill ahead of it + its own that are not cached) + wait for KV blocks
///   tpot   = base + ms_a_block * (KV blocks in use + its own)
///   wait   = blocks too many / blocks that become free in a millisecond
///   cost   = ttft + decodeWeight * output tokens * tpot + othersWeight * requests * (what its prefill delays them)
///
/// Speeds are learned (speed_book); an engine of which nothing is known counts as the mean of the others.
class predicted_latency final : public scorer {
 public:
  explicit predicted_latency(parameters& p) {
    p.read("decodeWeight", decode_weight_, 0, 100, "what a millisecond of decoding counts against one of waiting")
        .read("othersWeight", others_weight_, 0, 100, "what a millisecond that other requests lose counts")
        .read("defaultPrefillMsPerToken", prefill_, 0, 1000, "before anything is learned")
        .read("defaultTpotMs", tpot_, 0, 10'000, "before anything is learned")
        .read("defaultOutputTokens", output_, 1, 1e6, "before anything is learned")
        .read("host", host_, 0, 1, "what a cached block in the host's memory is worth")
        .read("disk", disk_, 0, 1, "what a cached block on disk is worth")
        .read("headroom", headroom_, 0.01, 1, "share of KV blocks in use above which a request is expected to wait");
  }
  bool uses_cache() const override { return true; }

  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto& request = context.request;
    const auto fleet = means(all);
    const auto block = static_cast<double>(request.block_size);
    const auto prompt = static_cast<double>(request.tokens());
    const auto own_blocks = static_cast<double>(request.prompt_blocks());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& c = all[i];
      const auto& s = c.load.speed;
      const double slope = s.prefill_ms_a_token.value_or(static_cast<float>(fleet.prefill));
      const double tpot_base = s.tpot_base_ms.value_or(static_cast<float>(fleet.tpot));
      const auto capacity = capacity_of(*c.to, block);
      const double tpot_slope = s.tpot_ms_a_block.value_or(0.0F);
      const double output = s.output_tokens.value_or(static_cast<float>(output_));
      const double cached = std::max(
          c.device_blocks + host_ * (c.host_blocks - c.device_blocks) + disk_ * (c.held_blocks - c.host_blocks),
          static_cast<double>(c.predicted_blocks));
      const double own = std::max(prompt - cached * block, 1.0);
      const double blocks = static_cast<double>(c.load.active_blocks) + own_blocks;
      const double tpot = tpot_base + tpot_slope * blocks;
      const double ttft = slope * (static_cast<double>(c.load.prefill_tokens) + own);
      out[i] = ttft + wait_for_blocks(capacity, blocks, output * tpot) + decode_weight_ * output * tpot +
               others_weight_ * slope * own * c.load.in_flight;
    }
  }

 private:
  struct fleet_means {
    double prefill;
    double tpot;
  };
  fleet_means means(std::span<const candidate> all) const {
    double prefill = 0, tpot = 0;
    unsigned with_prefill = 0, with_tpot = 0;
    for (const auto& c : all) {
      if (const auto v = c.load.speed.prefill_ms_a_token) prefill += *v, ++with_prefill;
      if (const auto v = c.load.speed.tpot_base_ms) tpot += *v, ++with_tpot;
    }
    return {with_prefill ? prefill / with_prefill : prefill_, with_tpot ? tpot / with_tpot : tpot_};
  }

  /// An engine that cannot hold one request more makes it wait until others have ended: of those in use, all become
  /// free in about the time one answer takes.
  double wait_for_blocks(std::optional<double> capacity, double blocks, double answer_ms) const {
    if (!capacity) return 0;
    const double usable = headroom_ * *capacity;
    return blocks <= usable ? 0 : (blocks - usable) / usable * answer_ms;
  }
  /// KV blocks of the engine, in blocks of the request's size; nothing if it has not said.
  static std::optional<double> capacity_of(const endpoint& to, double block) {
    const double engine_block = to.engine_block_size.value_or(to.block_size.value_or(0));
    const double capacity = block == 0 ? 0 : static_cast<double>(to.total_blocks.value_or(0)) * engine_block / block;
    return capacity > 0 ? std::optional(capacity) : std::nullopt;
  }

  double decode_weight_ = 0.01;
  double others_weight_ = 0.06;
  double prefill_ = 0.02;
  double tpot_ = 20;
  double output_ = 256;
  double host_ = 0.8;
  double disk_ = 0.5;
  double headroom_ = 0.95;
};

}  // namespace

plugin_type predicted_latency_scorer() {
  return {"predicted-latency-scorer", "least predicted time to first token and per token, in ms", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<predicted_latency>(p); }};
}

}  // namespace infernex::router::plugins
