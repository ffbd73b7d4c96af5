#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace infernex::gateway {

/// The routers that say they are there (RouterAnnounce). One that leaves or keeps silent is forgotten. Bounded; one
/// owner.
class router_list {
 public:
  using clock_point = std::chrono::steady_clock::time_point;
  struct limits {
    /// Three announcements missed.
    std::chrono::milliseconds silence{3'500};
    std::size_t most = 256;
  };
  router_list() : router_list(limits{}) {}
  explicit router_list(limits bounds) : bounds_(bounds) {}

  /// Each of these is true where the names have changed. What comes out of an epoch that is over is dropped.
  bool on_announce(std::string_view router, std::uint64_t epoch, bool leaving, clock_point now);
  bool expire(clock_point now);

  /// Sorted.
  std::vector<std::string> names() const;
  /// Routers not taken up for the bound.
  std::uint64_t refused() const { return refused_; }

 private:
  struct entry {
    std::uint64_t epoch;
    clock_point heard;
  };
  limits bounds_;
  std::map<std::string, entry, std::less<>> known_;
  std::uint64_t refused_ = 0;
};

/// The router that all gateways ask for this model: rendezvous hashing, so that when one goes only its models move.
/// Null if there is none but `without`.
const std::string* router_for(std::span<const std::string> routers, std::string_view model, std::string_view without);

}  // namespace infernex::gateway
