#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace infernex::gateway {

/// Processes that say every second that they are there: routers (RouterAnnounce), PD groups' proxies (PdState). One
/// that leaves or keeps silent is forgotten. Bounded; one owner.
class presence_list {
 public:
  using clock_point = std::chrono::steady_clock::time_point;
  struct limits {
    /// Three announcements missed.
    std::chrono::milliseconds silence{3'500};
    std::size_t most = 256;
  };
  presence_list() : presence_list(limits{}) {}
  explicit presence_list(limits bounds) : bounds_(bounds) {}

  /// These are true where something has changed. `word`: what else is to be known of it, e.g. its URL. What comes out
  /// of an epoch that is over is dropped.
  bool on_announce(std::string_view name, std::string_view word, std::uint64_t epoch, clock_point now);
  bool on_leave(std::string_view name, std::uint64_t epoch);
  bool expire(clock_point now);

  std::size_t size() const { return known_.size(); }
  /// Sorted.
  std::vector<std::string> names() const;
  std::map<std::string, std::string, std::less<>> words() const;
  /// Not taken up for the bound.
  std::uint64_t refused() const { return refused_; }

 private:
  struct entry {
    std::string word;
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
