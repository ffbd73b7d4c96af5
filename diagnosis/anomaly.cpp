#include "diagnosis/anomaly.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace infernex::diagnosis {

namespace {

/// Between the inertia of the dies we know, seconds.
constexpr double inertia = 16;
/// The slope before it is known, degrees a watt, and how many windows' worth of belief it gets.
constexpr double usual_slope = 0.1;
constexpr double belief = 20 * 15.0 * 15.0;
/// How far the slope may be from what is believed, degrees a watt.
constexpr double slope_doubt = 0.08;
constexpr double forget = 1.0 - 1.0 / 2880;
/// Floors: below these, peers that agree with each other to a tenth would make an alarm of a degree.
constexpr double least_scale = 0.7;
constexpr double least_watts_scale = 10;
constexpr double robust_limit = 6;
constexpr double deviations = 1.4826;
/// Half an hour, in windows.
constexpr double slow_share = 1.0 / 60;
constexpr double cusum_slack = 4;
constexpr double cusum_limit = 60;
constexpr double calm_again = 2.5;
constexpr std::uint32_t last_six = 0x3F;
constexpr int five = 5;

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double spread_of(const std::vector<double>& values, double median) {
  auto apart = values;
  for (auto& one : apart) one = std::abs(one - median);
  return deviations * median_of(apart);
}

bool five_of_six(std::uint32_t& windows, bool is_so) {
  windows = (windows << 1U | (is_so ? 1U : 0U)) & last_six;
  return std::popcount(windows) >= five;
}

}  // namespace

void thermal_watch::add(std::optional<double> celsius, std::optional<double> watts, std::optional<double> load,
                        millis now) {
  if (!celsius || !watts) return;
  const double seconds = static_cast<double>(now - last_) / 1000;
  if (last_ == 0 || seconds > 5 * inertia)
    filtered_ = *watts;
  else
    filtered_ += (*watts - filtered_) * seconds / (seconds + inertia);
  last_ = now;
  ++count_;
  sum_celsius_ += *celsius;
  sum_watts_ += *watts;
  sum_filtered_ += filtered_;
  sum_load_ += load.value_or(-1);
}

double thermal_watch::slope() const { return (common_ + belief * usual_slope) / (spread_ + belief); }

double thermal_watch::residual() const {
  const double celsius = sum_celsius_ / count_;
  const double watts = sum_filtered_ / count_;
  return celsius - mean_celsius_ - slope() * (watts - mean_watts_);
}

double thermal_watch::doubt() const {
  const double away = std::abs(sum_filtered_ / count_ - mean_watts_);
  return away * slope_doubt * belief / (spread_ + belief);
}

void thermal_watch::learn() {
  const double celsius = sum_celsius_ / count_;
  const double watts = sum_filtered_ / count_;
  const double kept = weight_ * forget;
  weight_ = kept + 1;
  const double dw = watts - mean_watts_;
  const double dc = celsius - mean_celsius_;
  mean_watts_ += dw / weight_;
  mean_celsius_ += dc / weight_;
  spread_ = spread_ * forget + kept / weight_ * dw * dw;
  common_ = common_ * forget + kept / weight_ * dw * dc;
  ++windows_;
}

void thermal_watch::judge(double excess, double scale) {
  excess_ = excess;
  const double z = excess / scale;
  const double sudden = (excess - slow_) / scale;
  const bool hot = five_of_six(hot_windows_, sudden > robust_limit || (warmer_ && excess > calm_again));
  warmer_ = (warmer_ || hot) && excess > calm_again;
  cusum_ = std::clamp(cusum_ + z - cusum_slack, 0.0, 2 * cusum_limit);
  drifts_ = (drifts_ || cusum_ > cusum_limit) && excess > calm_again;
  if (!warmer_) slow_ += (excess - slow_) * slow_share;
}

void thermal_watch::judge_power(double apart, double scale) {
  odd_power_ = five_of_six(power_windows_, std::abs(apart) / scale > robust_limit);
}

void thermal_watch::end_window(std::span<thermal_watch* const> peers) {
  std::vector<thermal_watch*> judged;
  for (auto* one : peers)
    if (one->has_window() && one->windows_ >= warm_up) judged.push_back(one);
  std::vector<double> residuals;
  for (auto* one : judged) residuals.push_back(one->residual());
  if (judged.size() >= least_peers) {
    auto sorted = residuals;
    const double middle = median_of(sorted);
    const double scale = std::max(least_scale, spread_of(residuals, middle));
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const double doubt = judged[i]->doubt();
      const double excess = residuals[i] - middle;
      judged[i]->judge(excess > 0 ? std::max(0.0, excess - doubt) : std::min(0.0, excess + doubt), scale);
    }
    for (auto* one : judged) {
      std::vector<double> watts;
      for (const auto* other : judged)
        if (std::abs(other->sum_load_ / other->count_ - one->sum_load_ / one->count_) < 10)
          watts.push_back(other->sum_watts_ / other->count_);
      if (watts.size() < least_peers) {
        one->judge_power(0, 1);
        continue;
      }
      const auto all = watts;
      const double usual = median_of(watts);
      one->judge_power(one->sum_watts_ / one->count_ - usual, std::max(least_watts_scale, spread_of(all, usual)));
    }
  }
  for (auto* one : peers) {
    // What is under suspicion teaches nothing.
    const bool calm = !one->warmer_ && !one->drifts_ && std::abs(one->excess_.value_or(0)) < calm_again;
    if (one->has_window() && (one->windows_ < warm_up || calm)) one->learn();
    one->start_window();
  }
}

}  // namespace infernex::diagnosis
