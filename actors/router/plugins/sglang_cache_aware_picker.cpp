#include <algorithm>
#include <limits>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/processed.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

/// While loads are balanced, the engine that caches most of the prompt: by the index if it answered, else by what was
/// routed lately (the approximate tree), if that is more than cacheThreshold of the prompt. Otherwise the least loaded.
/// Equally cached: the less loaded; equally loaded: the one that got fewer requests from here. (The original also
/// compares the sizes of the engines' trees, which are not known here.)
class sglang_cache_aware final : public picker {
 public:
  explicit sglang_cache_aware(parameters& p) {
    p.read("cacheThreshold", cache_threshold_, 0, 1, "share of the prompt above which a prediction decides")
        .read("balanceAbsThreshold", balance_abs_, 0, 1'000'000,
              "unbalanced: requests in flight differ by more than this, and by more than the next says")
        .read("balanceRelThreshold", balance_rel_, 1, 1e6, "unbalanced: the most loaded has so many times the least")
        .read("kvSpreadThreshold", kv_spread_, 0, 1, "unbalanced: shares of KV blocks in use differ by more; 1 = off")
        .read("kvOverloadThreshold", kv_overload_, 0, 1, "unbalanced: more KV blocks in use than this; 1 = off");
  }
  bool uses_cache() const override { return true; }
  void routed(const decision_context&, const candidate& to) override { processed_.add(to.to->slot); }

  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    const bool by_cache = !unbalanced(all) && cached_enough(context, all);
    rank_by(all.size(), keep, order, [&](std::uint32_t a, std::uint32_t b) {
      if (by_cache && cached(context, all[a]) != cached(context, all[b]))
        return cached(context, all[a]) > cached(context, all[b]);
      if (all[a].load.in_flight != all[b].load.in_flight) return all[a].load.in_flight < all[b].load.in_flight;
      return processed_.of(all[a].to->slot) < processed_.of(all[b].to->slot);
    });
  }

 private:
  static std::uint32_t cached(const decision_context& context, const candidate& c) {
    return context.index_known ? c.held_blocks : c.predicted_blocks;
  }
  bool cached_enough(const decision_context& context, std::span<const candidate> all) const {
    std::uint32_t most = 0;
    for (const auto& c : all) most = std::max(most, cached(context, c));
    if (context.index_known) return most > 0;
    return most > cache_threshold_ * context.request.blocks;
  }
  bool unbalanced(std::span<const candidate> all) const {
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max(), most = 0;
    double least_kv = 1, most_kv = 0;  // of those measured; with none there is no spread
    for (const auto& c : all) {
      least = std::min(least, c.load.in_flight);
      most = std::max(most, c.load.in_flight);
      if (!c.load.kv_usage) continue;
      least_kv = std::min(least_kv, *c.load.kv_usage);
      most_kv = std::max(most_kv, *c.load.kv_usage);
    }
    if (most_kv > kv_overload_ || most_kv - least_kv > kv_spread_) return true;
    return most > least && most - least > balance_abs_ && most > balance_rel_ * least;
  }

  double cache_threshold_ = 0.5;
  std::uint32_t balance_abs_ = 32;
  double balance_rel_ = 1.1;
  double kv_spread_ = 1.0;
  double kv_overload_ = 1.0;
  processed_counts processed_;
};

}  // namespace

plugin_type sglang_cache_aware_picker() {
  return {"sglang-cache-aware-picker", "the engine that caches most of the prompt, unless loads are unbalanced",
          "SGLang router (SMG), policy cache_aware",
          [](parameters& p) -> plugin_type::made { return std::make_unique<sglang_cache_aware>(p); }};
}

}  // namespace infernex::router::plugins
