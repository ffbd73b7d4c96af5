#include <algorithm>
#include <cmath>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Where neither the request nor its model says how long a block is.
constexpr double usual_block_tokens = 16;

/// A cost, in blocks: what there is to prefill there, less what is cached, and what there is to decode. The active
/// blocks are the routers' own count, in which a prefix that several requests share counts for each of them.
class dynamo_cost final : public scorer {
 public:
  explicit dynamo_cost(parameters& p) {
    p.read("overlapScoreCredit", credit_, 0, 1e3, "what a block cached on the device saves, in blocks of prefill")
        .read("overlapScoreCreditDecay", decay_, 0, 1e6,
              "how fast that falls with prefill queued there, beyond the least queue, by lengths of this prompt")
        .read("prefillLoadScale", prefill_scale_, 0, 1e6, "what a block to prefill counts against one to decode")
        .read("hostCacheHitWeight", host_, 0, 1e3, "what a block in the host's memory saves")
        .read("diskCacheHitWeight", disk_, 0, 1e3, "what a block on disk saves")
        .read("decodeActiveRequestWeight", request_weight_, 0, 1e6, "what a request in flight there counts, in blocks")
        .read("trackPrefillTokens", tracks_prefill_, "prompt tokens not yet prefilled count")
        .read_choice("routerSelectionPolicy", formula_, {"cost", "lmetric"},
                     "lmetric: blocks to prefill times (blocks to decode + 1)")
        .ignore("sharedCacheMultiplier", "no cache shared by engines is known here beyond their tiers");
  }
  bool uses_cache() const override { return credit_ > 0; }

  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto& request = context.request;
    const double block = request.block_size == 0 ? usual_block_tokens : request.block_size;
    // At least its cacheable blocks, where the length is an estimate.
    const double prompt = std::max(static_cast<double>(request.tokens()) / block, static_cast<double>(request.blocks));
    double least_queue = all.empty() ? 0.0 : queue_of(all.front(), block);
    for (const auto& c : all) least_queue = std::min(least_queue, queue_of(c, block));

    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& c = all[i];
      const double queue = queue_of(c, block);
      const double credit = credit_of(c, decay_at(queue - least_queue, std::ceil(prompt)));
      const double to_decode = static_cast<double>(c.load.active_blocks) + std::ceil(prompt);
      const double requests = request_weight_ * c.load.in_flight;
      const double to_prefill = std::max(queue + prompt - credit, 0.0);
      if (formula_ == lmetric)
        out[i] = to_prefill * (to_decode + 1);
      else if (c.to->role == fb::EngineRole::Decode && !tracks_prefill_ && credit_ > 0)
        out[i] = std::max(to_decode - credit, 0.0) + requests;
      else
        out[i] = prefill_scale_ * to_prefill + to_decode + requests;
    }
  }

 private:
  static constexpr std::size_t lmetric = 1;

  double queue_of(const candidate& c, double block) const {
    return tracks_prefill_ ? static_cast<double>(c.load.prefill_tokens) / block : 0.0;
  }
  double decay_at(double beyond_least, double prompt_blocks) const {
    if (!tracks_prefill_ || decay_ == 0 || prompt_blocks == 0) return 1;
    return 1 / (1 + decay_ * beyond_least / prompt_blocks);
  }
  double credit_of(const candidate& c, double decay) const {
    const auto device = std::max(c.device_blocks, c.predicted_blocks);
    const auto host = std::max(c.host_blocks, device);
    const auto all_tiers = std::max(c.held_blocks, host);
    return credit_ * decay * device + host_ * (host - device) + disk_ * (all_tiers - host);
  }

  double credit_ = 1.0;
  double decay_ = 0.0;
  double prefill_scale_ = 1.0;
  double host_ = 0.75;
  double disk_ = 0.25;
  double request_weight_ = 0.0;
  bool tracks_prefill_ = true;
  std::size_t formula_ = 0;
};

}  // namespace

plugin_type dynamo_cost_scorer() {
  return {"dynamo-cost-scorer", "a cost: blocks to prefill, less those cached, and blocks to decode",
          "NVIDIA Dynamo 1.5, kv-router, default selector",
          [](parameters& p) -> plugin_type::made { return std::make_unique<dynamo_cost>(p); }};
}

}  // namespace infernex::router::plugins
