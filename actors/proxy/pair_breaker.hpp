#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::proxy {

using clock_point = std::chrono::steady_clock::time_point;

struct breaker_limits {
  /// Failures in a row that open a pair.
  std::uint32_t failures = 3;
  /// How long it then stays open: the first time, and at most; it doubles while the trials fail.
  std::chrono::milliseconds first_pause{2'000};
  std::chrono::milliseconds most_pause{30'000};
  /// Pairs remembered; the one untouched longest makes room.
  std::size_t max_pairs = 4096;
};

/// Which pairs of a group are not to be used for a while. A pair that works is forgotten.
class pair_breaker {
 public:
  explicit pair_breaker(breaker_limits limits = {}) : limits_(limits) {}

  struct entry {
    fb::Breaker state = fb::Breaker::Closed;
    std::uint32_t failures = 0;
    std::chrono::milliseconds pause{0};
    clock_point until;
    clock_point touched;
  };
  /// Engines by their address.
  using pair_name = std::pair<std::string, std::string>;

  /// A request at the pair has ended. Whether the pair's state has changed.
  bool worked(const pair_name& pair);
  bool failed(const pair_name& pair, clock_point now);
  /// Lets trials through where the pause is over. Whether one was.
  bool on_tick(clock_point now);
  /// Nothing more is known of this engine's pairs.
  void forget(const std::string& address);

  const std::map<pair_name, entry>& entries() const { return pairs_; }
  std::uint64_t opened() const { return opened_; }

 private:
  void open(entry& e, clock_point now);
  breaker_limits limits_;
  std::map<pair_name, entry> pairs_;
  std::uint64_t opened_ = 0;
};

}  // namespace infernex::proxy
