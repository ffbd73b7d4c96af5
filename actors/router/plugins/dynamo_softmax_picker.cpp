#include <algorithm>
#include <cmath>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

/// Totals are costs. At temperature 0 the least one, a random one among equals; above it any, with a probability of
/// exp(-(cost - least) / ((most - least) * temperature)), all the same where costs are. Runners-up by cost.
class dynamo_softmax final : public picker {
 public:
  explicit dynamo_softmax(parameters& p) {
    p.read("temperature", temperature_, 0, 1e3, "0: the least cost; the higher, the more evenly spread");
  }
  bool takes_least() const override { return true; }
  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double> totals,
            std::size_t keep, std::vector<std::uint32_t>& order) override {
    rank_by_with_random_ties(context.random, all.size(), keep, order,
                             [&](std::uint32_t a, std::uint32_t b) { return totals[a] < totals[b]; });
    if (temperature_ == 0 || order.empty()) return;
    const auto chosen = sample(context.random, totals);
    const auto at = std::find(order.begin(), order.end(), chosen);
    // The first moves down; one that was not kept takes the place of the last.
    const auto end = at == order.end() ? at - 1 : at;
    std::move_backward(order.begin(), end, end + 1);
    order.front() = chosen;
  }

 private:
  std::uint32_t sample(random_source& random, std::span<const double> totals) {
    const auto [least, most] = std::minmax_element(totals.begin(), totals.end());
    const double scale = (*most - *least) * temperature_;
    sums_.resize(totals.size());
    double sum = 0;
    for (std::size_t i = 0; i < totals.size(); ++i)
      sums_[i] = sum += scale > 0 ? std::exp(-(totals[i] - *least) / scale) : 1.0;
    const double drawn = std::uniform_real_distribution<double>(0, sum)(random);
    const auto at = std::upper_bound(sums_.begin(), sums_.end(), drawn);
    return static_cast<std::uint32_t>(std::min<std::size_t>(at - sums_.begin(), totals.size() - 1));
  }

  double temperature_ = 0;
  std::vector<double> sums_;
};

}  // namespace

plugin_type dynamo_softmax_picker() {
  return {"dynamo-softmax-picker", "the least cost, or a random one by softmax of the costs",
          "NVIDIA Dynamo 1.5, kv-router, default selector",
          [](parameters& p) -> plugin_type::made { return std::make_unique<dynamo_softmax>(p); }};
}

}  // namespace infernex::router::plugins
