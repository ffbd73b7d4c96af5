#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

/// Of the engines that cache some of the prompt, and whose requests in flight are at most mean + factor * standard
/// deviation, the one that caches most, then the one with fewest in flight. If there is none: the fewest in flight, a
/// random one among equals. Where requests in flight differ by more than imbalanceAbsCount, only engines with the
/// fewest are chosen from.
class aibrix_prefix_cache final : public picker {
 public:
  explicit aibrix_prefix_cache(parameters& p) {
    p.read("imbalanceAbsCount", imbalance_, 0, 1'000'000, "requests in flight may differ by so many")
        .read("standardDeviationFactor", factor_, 0, 1e3, "how far above the mean an engine may be");
  }
  bool uses_cache() const override { return true; }

  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    const auto limit = most_in_flight(all);
    const auto worth = [&](std::uint32_t i) { return all[i].load.in_flight <= limit ? all[i].expected_blocks() : 0; };
    rank_by_with_random_ties(context.random, all.size(), keep, order, [&](std::uint32_t a, std::uint32_t b) {
      if (worth(a) != worth(b)) return worth(a) > worth(b);
      return all[a].load.in_flight < all[b].load.in_flight;
    });
  }

 private:
  /// That an engine may have in flight for its cache to count.
  double most_in_flight(std::span<const candidate> all) const {
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max(), most = 0;
    double sum = 0;
    for (const auto& c : all) {
      least = std::min(least, c.load.in_flight);
      most = std::max(most, c.load.in_flight);
      sum += c.load.in_flight;
    }
    if (most > least && most - least > imbalance_) return least;
    const double mean = sum / static_cast<double>(all.size());
    double squares = 0;
    for (const auto& c : all) squares += (c.load.in_flight - mean) * (c.load.in_flight - mean);
    return mean + factor_ * std::sqrt(squares / static_cast<double>(all.size()));
  }

  std::uint32_t imbalance_ = 8;
  double factor_ = 1;
};

}  // namespace

plugin_type aibrix_prefix_cache_picker() {
  return {"aibrix-prefix-cache-picker", "the engine that caches most of the prompt among those not overloaded",
          "AIBrix gateway, strategy prefix-cache",
          [](parameters& p) -> plugin_type::made { return std::make_unique<aibrix_prefix_cache>(p); }};
}

}  // namespace infernex::router::plugins
