#include <algorithm>
#include <limits>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/decode_engines.hpp"

namespace infernex::router::plugins {
namespace {

/// A cost in milliseconds, the least is best: the predicted time to first token, plus what its answer's tokens would
/// take here, plus what it would cost those that are answered here already.
///
///   prompt = ms_a_token * (tokens to prefill ahead of it + its own that are not cached)
///            + othersWeight * requests * (what its prefill delays them)
///   answer = wait for KV blocks + decodeWeight * output tokens * tpot
///   tpot   = base + ms_a_block * (KV blocks in use + its own), half by its own line, half by the mean of all
///   wait   = blocks too many / blocks that become free in a millisecond
///
/// An engine alone costs both. Of a pair the prefill engine costs the prompt's part, the decode engine the answer's and
/// the transfer; a decode engine is given the less of the two (prefill_offers). A prompt that is computed there stops
/// the answers that were sent there to be undisturbed: that counts decodeStallWeight / free share of its KV blocks
/// instead of othersWeight.
///
/// Speeds are learned (speed_book); an engine of which nothing is known counts as the mean of the others. What is
/// learned of a prefill engine is the time to the pair's first token, transfer included, so that is added only before.
class predicted_latency final : public scorer {
 public:
  explicit predicted_latency(parameters& p) : comparison_(*this) {
    p.read("decodeWeight", decode_weight_, 0, 100, "what a millisecond of decoding counts against one of waiting")
        .read("othersWeight", others_weight_, 0, 100, "what a millisecond that other requests lose counts")
        .read("decodeStallWeight", stall_weight_, 0, 100,
              "the same on a decode engine, all of whose KV blocks are free")
        .read("prefillOnDecode", prefill_on_decode_, "whether decode engines compute prompts that cost less so")
        .read("transferMs", transfer_, 0, 10'000, "of a pair, before anything is learned")
        .read("transferMsPerToken", transfer_a_token_, 0, 1000, "of a pair, before anything is learned")
        .read("defaultPrefillMsPerToken", prefill_, 0, 1000, "before anything is learned")
        .read("defaultTpotMs", tpot_, 0, 10'000, "before anything is learned")
        .read("defaultOutputTokens", output_, 1, 1e6, "before anything is learned")
        .read("host", host_, 0, 1, "what a cached block in the host's memory is worth")
        .read("disk", disk_, 0, 1, "what a cached block on disk is worth")
        .read("headroom", headroom_, 0.01, 1, "share of KV blocks in use above which a request is expected to wait");
  }
  bool uses_cache() const override { return true; }
  disaggregation_decider* decides() override { return &comparison_; }

  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    fleet_ = means_of(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (context.leg == serving_leg::prefill)
        out[i] = prompt_cost(context, all[i], prefill_speed(all[i], nullptr), others_weight_);
      else if (const auto weights = weigh(context, all[i]))
        out[i] = std::min(weights->as_pair, weights->alone);
      else
        out[i] = alone_cost(context, all[i], prefill_speed(all[i], nullptr));
    }
  }

 private:
  /// Of the engines that score() has just looked at.
  struct fleet_means {
    std::optional<double> prefill;
    double tpot = 0;
    double tpot_a_block = 0;
  };
  struct comparison final : disaggregation_decider {
    explicit comparison(const predicted_latency& of) : of_(of) {}
    bool disaggregate(const decision_context& context, const candidate& decode) override {
      const auto weights = weigh(context, decode);
      return weights && weights->as_pair < weights->alone;
    }
    std::optional<pair_weights> weigh(const decision_context& context, const candidate& decode) const override {
      return of_.weigh(context, decode);
    }
    const predicted_latency& of_;
  };

  std::optional<pair_weights> weigh(const decision_context& context, const candidate& c) const {
    if (!context.offers || c.to->role != fb::EngineRole::Decode) return std::nullopt;
    const auto* offer = context.offers->find(c.to->group);
    if (!offer) return std::nullopt;
    const bool alone = prefill_on_decode_ && computes_prompts(*c.to);
    return pair_weights{
        offer->by->to, offer->cost + transfer_ms(context.request, c, *offer->by) + answer_cost(context.request, c),
        alone ? alone_cost(context, c, prefill_speed(c, offer->by)) : std::numeric_limits<double>::infinity()};
  }

  double alone_cost(const decision_context& context, const candidate& c, double ms_a_token) const {
    const double weight = c.to->role == fb::EngineRole::Decode ? stall_weight(context.request, c) : others_weight_;
    return prompt_cost(context, c, ms_a_token, weight) + answer_cost(context.request, c);
  }
  /// Answers that stall keep their blocks for longer: the less are free, the more requests that costs.
  double stall_weight(const placement& request, const candidate& decode) const {
    constexpr double least_free = 0.05;
    const auto capacity = kv_capacity(*decode.to, request.block_size);
    const double free = capacity ? 1 - blocks_with(request, decode) / *capacity : 1;
    return stall_weight_ / std::max(free, least_free);
  }
  static double blocks_with(const placement& request, const candidate& c) {
    return static_cast<double>(c.load.active_blocks) + static_cast<double>(request.prompt_blocks());
  }
  double prompt_cost(const decision_context& context, const candidate& c, double ms_a_token, double others) const {
    const double own = uncached_tokens(context.request, c);
    return ms_a_token * (static_cast<double>(c.load.prefill_tokens) + own) +
           others * ms_a_token * own * c.load.in_flight;
  }
  double answer_cost(const placement& request, const candidate& c) const {
    const double blocks = blocks_with(request, c);
    // A line through one engine's last fifty answers errs more than engines of one kind differ: half of it is the mean
    // of all.
    const auto& s = c.load.speed;
    const double all = fleet_.tpot + fleet_.tpot_a_block * blocks;
    const double tpot = s.tpot_base_ms ? (*s.tpot_base_ms + s.tpot_ms_a_block.value_or(0.0F) * blocks + all) / 2 : all;
    const double answer_ms = s.output_tokens.value_or(static_cast<float>(output_)) * tpot;
    return wait_for_blocks(kv_capacity(*c.to, request.block_size), blocks, answer_ms) + decode_weight_ * answer_ms;
  }

  /// Of prompt tokens; at least one is always computed.
  double uncached_tokens(const placement& request, const candidate& c) const {
    const double cached =
        std::max(c.device_blocks + host_ * (c.host_blocks - c.device_blocks) + disk_ * (c.held_blocks - c.host_blocks),
                 static_cast<double>(c.predicted_blocks));
    return std::max(static_cast<double>(request.tokens()) - cached * request.block_size, 1.0);
  }
  /// `like`: an engine of its group, if nothing is known of it and its kind.
  double prefill_speed(const candidate& c, const candidate* like) const {
    if (const auto own = c.load.speed.prefill_ms_a_token) return *own;
    if (fleet_.prefill) return *fleet_.prefill;
    return like ? like->load.speed.prefill_ms_a_token.value_or(static_cast<float>(prefill_)) : prefill_;
  }
  double transfer_ms(const placement& request, const candidate& decode, const candidate& prefill) const {
    if (prefill.load.speed.prefill_ms_a_token) return 0;
    return transfer_ + transfer_a_token_ * uncached_tokens(request, decode);
  }

  fleet_means means_of(std::span<const candidate> all) const {
    double prefill = 0, tpot = 0, tpot_a_block = 0;
    unsigned with_prefill = 0, with_tpot = 0;
    for (const auto& c : all) {
      const auto& s = c.load.speed;
      if (s.prefill_ms_a_token) prefill += *s.prefill_ms_a_token, ++with_prefill;
      if (s.tpot_base_ms) tpot += *s.tpot_base_ms, tpot_a_block += s.tpot_ms_a_block.value_or(0.0F), ++with_tpot;
    }
    fleet_means means{std::nullopt, tpot_, 0};
    if (with_prefill) means.prefill = prefill / with_prefill;
    if (with_tpot) means.tpot = tpot / with_tpot, means.tpot_a_block = tpot_a_block / with_tpot;
    return means;
  }
  /// An engine that cannot hold one request more makes it wait until others have ended: of those in use, all become
  /// free in about the time one answer takes.
  double wait_for_blocks(std::optional<double> capacity, double blocks, double answer_ms) const {
    if (!capacity) return 0;
    const double usable = headroom_ * *capacity;
    return blocks <= usable ? 0 : (blocks - usable) / usable * answer_ms;
  }

  double decode_weight_ = 0.01;
  double others_weight_ = 0.06;
  double stall_weight_ = 0.12;
  bool prefill_on_decode_ = true;
  /// 128 KiB a token (Llama 3 8B in bf16) over 25 GB/s.
  double transfer_ = 2;
  double transfer_a_token_ = 0.005;
  double prefill_ = 0.02;
  double tpot_ = 20;
  double output_ = 256;
  double host_ = 0.8;
  double disk_ = 0.5;
  double headroom_ = 0.95;
  fleet_means fleet_;
  comparison comparison_;
};

}  // namespace

plugin_type predicted_latency_scorer() {
  return {"predicted-latency-scorer", "least predicted time to first token and per token, in ms", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<predicted_latency>(p); }};
}

}  // namespace infernex::router::plugins
