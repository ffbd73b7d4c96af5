#include "monitor/sim_random.hpp"

#include <array>

namespace infernex::monitor {

namespace {

/// Where the standard normal distribution reaches `p`, by bisection of its integral: 4096 of them, once.
double normal_quantile(double p) {
  double low = -8;
  double high = 8;
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

}  // namespace

const float* sim_random::normal_quantiles() {
  static const auto table = [] {
    std::array<float, 4096> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<float>(normal_quantile((static_cast<double>(i) + 0.5) / 4096.0));
    return all;
  }();
  return table.data();
}

}  // namespace infernex::monitor
