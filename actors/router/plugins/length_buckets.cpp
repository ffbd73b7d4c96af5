#include "actors/router/plugins/length_buckets.hpp"

#include <algorithm>
#include <numeric>

namespace infernex::router::plugins {

namespace {

/// Lengths a group, below which ranges would follow chance.
constexpr std::size_t enough = 4;

double sum(std::span<const std::uint64_t> lengths) { return std::accumulate(lengths.begin(), lengths.end(), 0.0); }

double engines(std::span<const length_buckets::member> groups) {
  double all = 0;
  for (const auto& g : groups) all += g.engines;
  return all;
}

}  // namespace

length_buckets::length_buckets(settings s) : settings_(s) { ring_.resize(std::max(s.most_lengths, 1U)); }

void length_buckets::placed(std::uint64_t tokens, clock_point now) {
  forget_old(now);
  // A prompt that is cached in full is work all the same.
  ring_[(first_ + count_) % ring_.size()] = {std::max<std::uint64_t>(tokens, 1), now};
  if (count_ < ring_.size())
    ++count_;
  else
    first_ = (first_ + 1) % ring_.size();
}

void length_buckets::forget_old(clock_point now) {
  while (count_ != 0 && now - ring_[first_].at > settings_.window) {
    first_ = (first_ + 1) % ring_.size();
    --count_;
  }
}

void length_buckets::sort_lengths() {
  sorted_.clear();
  for (std::size_t i = 0; i < count_; ++i) sorted_.push_back(ring_[(first_ + i) % ring_.size()].tokens);
  std::sort(sorted_.begin(), sorted_.end());
}

std::span<const length_buckets::range> length_buckets::ranges(std::span<const member> groups, clock_point now) {
  const bool same = std::equal(groups.begin(), groups.end(), groups_.begin(), groups_.end());
  if (same && now - looked_ < settings_.adjust) return ranges_;
  looked_ = now;
  if (!same) groups_.assign(groups.begin(), groups.end());
  forget_old(now);
  sort_lengths();
  if (count_ < enough * groups.size()) {
    // A quiet spell is no reason to forget what was learned of the same groups.
    if (!same) split_first();
  } else if (!same || !learned_ || !fair()) {
    learn();
  }
  return ranges_;
}

void length_buckets::split_first() {
  learned_ = false;
  ranges_.assign(groups_.size(), {});
  const auto half = groups_.size() / 2;
  if (half == 0 || settings_.first_split == 0) return;
  for (std::size_t i = 0; i < groups_.size(); ++i)
    if (i < half)
      ranges_[i].max = settings_.first_split - 1;
    else
      ranges_[i].min = settings_.first_split;
}

void length_buckets::learn() {
  learned_ = true;
  ranges_.assign(groups_.size(), {});
  const double work = sum(sorted_);
  const double all = engines(groups_);
  double due = 0, done = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < groups_.size(); ++i) {
    due += work * groups_[i].engines / all;
    while (next + 1 < sorted_.size() && done + static_cast<double>(sorted_[next]) < due)
      done += static_cast<double>(sorted_[next++]);
    ranges_[i].max = ranges_[i + 1].min = sorted_[next];
  }
}

bool length_buckets::fair() const {
  const double work = sum(sorted_);
  const double all = engines(groups_);
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    // Half of what is shared with a neighbour, all of what is not.
    double has = 0;
    for (const auto tokens : sorted_) {
      const auto fits = [&](const range& r) { return r.min <= tokens && tokens <= r.max; };
      if (fits(ranges_[i]))
        has += static_cast<double>(tokens) / static_cast<double>(std::count_if(ranges_.begin(), ranges_.end(), fits));
    }
    const double due = work * groups_[i].engines / all;
    if (has > 2 * due || has < due / 2) return false;
  }
  return true;
}

}  // namespace infernex::router::plugins
