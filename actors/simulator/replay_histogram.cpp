#include "actors/simulator/replay_histogram.hpp"

#include <cmath>

namespace infernex::simulator {

std::optional<double> replay_histogram::mean() const {
  if (count_ == 0) return std::nullopt;
  return sum_ / static_cast<double>(count_);
}

std::optional<double> replay_histogram::most() const {
  if (count_ == 0) return std::nullopt;
  return most_;
}

double replay_histogram::middle_of(std::uint64_t bucket) const {
  if (bucket == 0) return least_;
  if (bucket == bucket_count - 1) return most_;
  const auto edge = [](std::uint64_t slot) { return std::bit_cast<double>(slot << (52 - sub_bits)); };
  const auto slot = first_slot + bucket - 1;
  return std::clamp((edge(slot) + edge(slot + 1)) / 2, least_, most_);
}

std::optional<double> replay_histogram::quantile(double share) const {
  if (count_ == 0) return std::nullopt;
  const auto exact = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact));
  std::uint64_t below = 0;
  for (std::uint64_t i = 0; i < bucket_count; ++i) {
    below += buckets_[i];
    if (below >= rank) return middle_of(i);
  }
  return most_;
}

}  // namespace infernex::simulator
