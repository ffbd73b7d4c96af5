#pragma once

#include <cmath>
#include <cstdint>

namespace infernex::monitor {

/// A small, fast generator (splitmix64): the same numbers for the same seed, anywhere.
class sim_random {
 public:
  explicit sim_random(std::uint64_t seed) : state_(seed), normals_(normal_quantiles()) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// 0 <= x < 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double from, double to) { return from + (to - from) * uniform(); }
  /// 0 <= x < n; n > 0.
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((next() >> 32) * n >> 32); }
  double exponential(double mean) { return -mean * std::log(1.0 - uniform()); }
  /// Mean 0, deviation 1, but for heavier tails than a Gaussian's: one in 4096 is 2.5 times as far, as sensors have it.
  double noise() {
    const auto bits = next();
    const double x = normals_[bits & 4095];
    return (bits >> 52) == 0 ? 2.5 * x : x;
  }

 private:
  static const float* normal_quantiles();
  std::uint64_t state_;
  const float* normals_;
};

/// A seed of its own for each part of a simulation.
inline std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t part) {
  return sim_random(seed ^ (part * 0xD1342543DE82EF95ULL + 0x632BE59BD9B4E019ULL)).next();
}

}  // namespace infernex::monitor
