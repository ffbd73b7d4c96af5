#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "actors/router/load_board.hpp"

namespace infernex::router::plugins {

/// Ranges of prompt lengths, one for each PD group, such that every group gets work in proportion to its prefill
/// engines, short prompts the first: learned from the lengths of the last half minute. Neighbours share the length
/// they meet at, for prompts of one length may be more work than one group's share. Times never go back.
///
/// After SMG's bucket policy, but in tokens that need computing, and not its slips: ranges always come from the window,
/// whoever joins or leaves; old lengths expire with time, not with the next request; work that is done no longer
/// counts.
class length_buckets {
 public:
  struct settings {
    std::chrono::milliseconds window{30'000};
    /// How often ranges are looked at; they are made anew where a group's share of the window's work is more than
    /// twice, or less than half, of what is due to it.
    std::chrono::milliseconds adjust{5'000};
    /// Until enough is learned: the first half of the groups takes shorter prompts, the others the rest.
    std::uint64_t first_split = 200;
    std::uint32_t most_lengths = 4096;
  };
  struct member {
    std::uint64_t name;
    std::uint32_t engines;
    friend bool operator==(const member&, const member&) = default;
  };
  struct range {
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  };

  explicit length_buckets(settings s);

  /// Ranges for these groups, in the same order: min 0 first, nowhere a gap, no limit last.
  std::span<const range> ranges(std::span<const member> groups, clock_point now);
  /// A prompt was placed: so many of its tokens have to be computed.
  void placed(std::uint64_t tokens, clock_point now);
  std::size_t lengths() const { return count_; }

 private:
  struct length {
    std::uint64_t tokens;
    clock_point at;
  };
  void forget_old(clock_point now);
  void sort_lengths();
  void split_first();
  void learn();
  bool fair() const;

  settings settings_;
  std::vector<length> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> sorted_;
  std::vector<member> groups_;
  std::vector<range> ranges_;
  bool learned_ = false;
  clock_point looked_;
};

}  // namespace infernex::router::plugins
