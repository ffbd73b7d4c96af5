#pragma once

#include <cstdint>
#include <mutex>

#include "gateway/life.hpp"

namespace infernex::gateway {

/// Where the I/O threads leave their life events for the gateway's actor: outside its mailbox, which dies with it,
/// for an event lost is a load that stays for ever. Bounded: above, changes are summed up by engine, so that totals
/// stay exact, and single records (started ids, finished requests, routed prompts) are dropped and counted.
/// Thread-safe.
class life_inbox {
 public:
  struct limits {
    std::size_t max_changes = 65'536;
    std::size_t max_finished = 65'536;
    /// Block keys of routed prompts.
    std::size_t max_keys = 4U << 20;
  };
  explicit life_inbox(limits bounds) : bounds_(bounds) {}
  life_inbox() : life_inbox(limits{}) {}

  /// True: the actor is to be woken, for it has not been since it last took.
  bool put(life_events&& events);
  /// All that waits, in order.
  life_events take();
  std::uint64_t dropped() const;

 private:
  void sum_up();

  limits bounds_;
  mutable std::mutex guard_;
  life_events waiting_;
  std::size_t keys_ = 0;
  bool woken_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace infernex::gateway
