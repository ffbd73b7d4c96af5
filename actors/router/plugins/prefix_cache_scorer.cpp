#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Where the matched blocks are known from.
enum class knowledge : std::uint8_t { either, index, predictions };

/// (1 - w) * matched / blocks + w * min(1, matched tokens / scale)^2.
class prefix_cache final : public scorer {
 public:
  prefix_cache(parameters& p, knowledge by) : by_(by) {
    std::string producer;
    p.read("matchLengthWeight", length_weight_, 0, 1, "weight of the matched length against the matched share")
        .read("matchLengthScaleTokens", scale_tokens_, 1, 1e9, "matched tokens from which the length counts in full")
        .read("prefixMatchInfoProducerName", producer,
              "approx-…: by predictions only; precise-…: by the index only; else whichever knows of more");
    if (producer.starts_with("approx")) by_ = knowledge::predictions;
    if (producer.starts_with("precise")) by_ = knowledge::index;
    constexpr std::string_view elsewhere = "the index and the predictions are configured under router.prediction";
    for (const auto name :
         {"autoTune", "blockSize", "hashBlockSize", "blockSizeTokens", "maxPrefixBlocksToMatch",
          "maxPrefixTokensToMatch", "lruCapacityPerServer", "mode", "tokenProcessorConfig", "indexerConfig",
          "kvEventsConfig", "tokenizersPoolConfig", "speculativeIndexing", "speculativeTTL"})
      p.ignore(name, elsewhere);
  }
  bool uses_cache() const override { return true; }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const double blocks = context.request.blocks;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double matched = matched_blocks(all[i]);
      const auto length = std::min(1.0, matched * context.request.block_size / scale_tokens_);
      out[i] = blocks == 0 ? 0.0 : length_weight_ * length * length + (1.0 - length_weight_) * matched / blocks;
    }
  }

 private:
  std::uint32_t matched_blocks(const candidate& c) const {
    if (by_ == knowledge::index) return c.held_blocks;
    return by_ == knowledge::predictions ? c.predicted_blocks : c.expected_blocks();
  }

  knowledge by_;
  double length_weight_ = 0;
  double scale_tokens_ = 8192;
};

}  // namespace

plugin_type prefix_cache_scorer() {
  return {"prefix-cache-scorer", "share of the prompt that the engine caches, or should by what was routed to it",
          "Gateway API Inference Extension, scorer of that name",
          [](parameters& p) -> plugin_type::made { return std::make_unique<prefix_cache>(p, knowledge::either); }};
}

plugin_type precise_prefix_cache_scorer() {
  return {"precise-prefix-cache-scorer", "share of the prompt that the engine caches by the KV index", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<prefix_cache>(p, knowledge::index); }};
}

}  // namespace infernex::router::plugins
