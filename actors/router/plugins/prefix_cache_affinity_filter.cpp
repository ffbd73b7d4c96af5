#include <algorithm>
#include <optional>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Only engines that cache nearly the whole prompt, if there are any, unless they are so much busier that the others
/// would begin to answer sooner.
class prefix_cache_affinity final : public filter {
 public:
  explicit prefix_cache_affinity(parameters& p) {
    p.read("affinityThreshold", threshold_, 0, 1, "share of the prompt from which an engine counts as caching it")
        .read("explorationProbability", exploration_, 0, 1, "how often everybody stays, to learn of others")
        .read("maxTTFTPenaltyMs", most_penalty_ms_, 0, 1e9, "how much later it may begin to answer; 0: any")
        .read_choice("ttftSource", source_, {"prefillThroughput", "latencyPredictor"}, "how that is known")
        .read("peakPrefillThroughput", tokens_a_second_, 1, 1e12, "for prefillThroughput, tokens a second")
        .ignore("prefillCalibrationFile", "latencyPredictor uses what was learned of each engine")
        .ignore("prefillCalibrationFingerprint", "latencyPredictor uses what was learned of each engine")
        .ignore("prefillCalibrationRequired", "latencyPredictor uses what was learned of each engine")
        .ignore("prefixMatchInfoProducerName", "cached blocks have one source here")
        .ignore("latencyPredictionInfoProducerName", "speeds have one source here")
        .ignore("inFlightLoadProducerName", "in-flight requests have one source here");
  }
  bool uses_cache() const override { return true; }

  void apply(const decision_context& context, std::vector<candidate>& kept) override {
    if (kept.size() < 2 || threshold_ <= 0 || context.request.blocks == 0) return;
    if (exploration_ > 0 && std::uniform_real_distribution<double>(0, 1)(context.random) < exploration_) return;
    const auto sticky = [&](const candidate& c) {
      return static_cast<double>(c.expected_blocks()) / context.request.blocks >= threshold_;
    };
    const auto count = static_cast<std::size_t>(std::count_if(kept.begin(), kept.end(), sticky));
    if (count == 0 || count == kept.size()) return;
    if (most_penalty_ms_ > 0) {
      std::optional<double> best[2];
      for (const auto& c : kept)
        if (const auto ms = ttft_ms(context, c)) {
          auto& of = best[sticky(c)];
          of = of ? std::min(*of, *ms) : *ms;
        }
      if (!best[0] || !best[1] || *best[1] - *best[0] > most_penalty_ms_) return;
    }
    std::erase_if(kept, [&](const candidate& c) { return !sticky(c); });
  }

 private:
  std::optional<double> ttft_ms(const decision_context& context, const candidate& c) const {
    const auto ahead = static_cast<double>(c.load.prefill_tokens);
    if (source_ == 0) return ahead / tokens_a_second_ * 1000.0;
    const auto& speed = c.load.speed;
    if (!speed.ttft_base_ms || !speed.prefill_ms_a_token) return std::nullopt;
    const auto own = static_cast<double>(context.request.uncached_tokens(c.expected_blocks()));
    return *speed.ttft_base_ms + (ahead + own) * *speed.prefill_ms_a_token;
  }

  double threshold_ = 0.8;
  double exploration_ = 0;
  double most_penalty_ms_ = 18'000;
  std::size_t source_ = 0;
  double tokens_a_second_ = 15'928;
};

}  // namespace

plugin_type prefix_cache_affinity_filter() {
  return {"prefix-cache-affinity-filter", "only engines that cache nearly the whole prompt, unless they are too busy",
          "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<prefix_cache_affinity>(p); }};
}

}  // namespace infernex::router::plugins
