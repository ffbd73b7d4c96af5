#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Each with a chance in proportion to its total, without putting back: the largest keys U^(1/total) (A-Res, Efraimidis
/// and Spirakis 2006), taken here as ln(U) / total, which is in the same order. All zero: each as likely.
class weighted_random final : public picker {
 public:
  explicit weighted_random(parameters& p) {
    p.ignore("maxNumOfEndpoints", "runners-up are kept for retry whatever it says");
  }
  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double> totals,
            std::size_t keep, std::vector<std::uint32_t>& order) override {
    const bool none = std::none_of(totals.begin(), totals.end(), [](double t) { return t > 0; });
    std::uniform_real_distribution<double> any(std::numeric_limits<double>::min(), 1.0);
    keys_.clear();
    for (const auto total : totals) {
      const double weight = none ? 1.0 : total;
      keys_.push_back(weight > 0 ? std::log(any(context.random)) / weight : -std::numeric_limits<double>::infinity());
    }
    order.resize(all.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto kept = std::min(keep, all.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return keys_[a] > keys_[b]; });
    order.resize(kept);
  }

 private:
  std::vector<double> keys_;
};

}  // namespace

plugin_type weighted_random_picker() {
  return {"weighted-random-picker", "any of them, by chance in proportion to its total",
          "Gateway API Inference Extension",
          [](parameters& p) -> plugin_type::made { return std::make_unique<weighted_random>(p); }};
}

}  // namespace infernex::router::plugins
