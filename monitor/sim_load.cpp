#include "monitor/sim_load.hpp"

#include <algorithm>

namespace infernex::monitor {

sim_group_load::sim_group_load(std::uint32_t period_ms, sim_random& random) {
  const double seconds = period_ms / 1000.0;
  follow_ = 1 - std::exp(-seconds / 20);
  shake_ = 0.08 * std::sqrt(1 - std::exp(-2 * seconds / 20));
  level_ = random.uniform(0, 0.9);
  load_ = level_;
}

void sim_group_load::step(std::uint64_t now_ms, double hour, sim_random& random) {
  if (now_ms >= next_ms_) {
    constexpr double pi = 3.14159265358979;
    const double day = 0.75 + 0.25 * std::cos((hour - 15) / 12 * pi);
    const auto dice = random.below(100);
    processes_ = dice == 0 ? 0 : 1;
    level_ = dice < 15 ? 0 : std::min(1.0, random.uniform(0.1, 1.15) * day);
    next_ms_ = now_ms + static_cast<std::uint64_t>(1000 * (processes_ == 0 ? 45 : 20 + random.exponential(280)));
  }
  load_ += (level_ - load_) * follow_ + (level_ == 0 ? 0 : shake_ * random.noise());
  load_ = std::clamp(load_, 0.0, 1.0);
}

}  // namespace infernex::monitor
