#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/router/load_board.hpp"

namespace infernex::router {

/// Requests that wait for an engine to have room: bounded, by priority, fair between tenants, earliest deadline first.
///
/// - A higher priority goes first, whatever waits below it.
/// - Within a priority the tenant goes next that was served least, counted in tokens (Virtual Token Counter, Sheng et
///   al., OSDI '24). A tenant that comes back to the line is lifted to the least counter of those who wait, so that
///   absence earns nothing.
/// - A tenant's own requests go by deadline, those without one last, then by arrival.
/// - In a full line the lowest priority makes room: the newest request of the tenant that has most waiting there, the
///   newcomer counted with his own (the newest of all would always be the newcomer, and a tenant that floods the line
///   would keep the others out of it).
///
/// Knows requests by ticket only. Not thread-safe.
class waiting_line {
 public:
  using ticket = std::uint64_t;  // never 0
  struct limits {
    std::size_t max_requests = 1'024;
    std::chrono::milliseconds max_wait{30'000};
    /// Tenants whose count is kept while they have nothing waiting, a model and priority.
    std::size_t max_absent_tenants = 1'024;
    /// Waiting requests that next() looks at before it says that none can go.
    std::size_t max_looks = 64;
  };
  struct request {
    std::string model;
    std::string tenant;
    std::int32_t priority = 0;
    /// Tokens it is counted for.
    std::uint64_t cost = 1;
    /// For its turn among the tenant's own.
    std::optional<clock_point> due = {};
    /// After which nobody waits for it any more; the line's max_wait counts where that is earlier.
    std::optional<clock_point> until = {};
  };
  struct admission {
    /// Nothing: the line is full of others.
    std::optional<ticket> taken;
    /// Whom it put out of the line.
    std::optional<ticket> evicted;
  };

  explicit waiting_line(limits bounds) : bounds_(bounds) {}

  admission admit(request what, clock_point now);
  /// The next that `can_go`, out of the line and counted for its tenant; nothing if none of those looked at can.
  std::optional<ticket> next(std::string_view model, const std::function<bool(ticket)>& can_go);
  /// Those who have waited too long, out of the line.
  std::vector<ticket> expire(clock_point now);
  /// False if it is not in the line.
  bool leave(ticket who);

  std::size_t size() const { return entries_.size(); }
  bool waits_for(std::string_view model) const { return !entries_.empty() && lines_.contains(model); }
  std::vector<std::string> models() const;
  /// 1 = next, if all before it can go; those of other tenants are counted as if tenants took turns. 0: not in the
  /// line.
  std::size_t position(ticket who) const;

 private:
  struct rank {
    clock_point due;
    ticket number;
    auto operator<=>(const rank&) const = default;
  };
  struct flow {
    std::uint64_t served = 0;
    std::set<rank> waiting;
    /// The newest is evicted first, whatever its deadline.
    std::set<ticket> by_arrival;
  };
  struct band {
    std::map<std::string, flow, std::less<>> tenants;
    std::size_t waiting = 0;
  };
  using bands = std::map<std::int32_t, band, std::greater<>>;
  struct entry {
    request what;
    clock_point due;
    clock_point until;
  };

  std::optional<ticket> victim_for(const request& newcomer) const;
  void remove(ticket who);
  void forget_absent(band& of) const;

  limits bounds_;
  std::map<std::string, bands, std::less<>> lines_;
  std::unordered_map<ticket, entry> entries_;
  std::set<std::pair<clock_point, ticket>> by_end_;
  ticket next_ = 1;
};

}  // namespace infernex::router
