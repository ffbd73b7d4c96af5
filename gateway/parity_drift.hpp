#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace infernex::gateway {

/// Tells when an engine's reports of cached tokens go apart from what was expected of it, and when they agree again.
///
/// Each request moves two sums that fade by `decay`: of |predicted - reported|, and of max(predicted, reported). Their
/// quotient is the engine's error, 0..1; large prompts count for more than small ones, and an engine about which
/// fewer than `least_tokens` are known has no error. It drifts once `requests` in a row have left it above the
/// threshold, and agrees again after as many below half of it.
class parity_drift {
 public:
  struct settings {
    double threshold = 0.3;
    std::uint32_t requests = 20;
    double decay = 0.95;
    std::uint32_t least_tokens = 256;
    /// Watched at most; a further one takes the place of the one that was noted longest ago.
    std::size_t max_instances = 1024;
  };
  explicit parity_drift(settings how) : how_(how) {}

  /// A change of state: over the requests that led to it.
  struct notice {
    bool drifting = false;
    std::uint64_t predicted = 0;
    std::uint64_t reported = 0;
    std::uint32_t requests = 0;
    double error = 0;
  };
  /// A finished request's cached tokens, predicted and reported.
  std::optional<notice> note(std::string_view instance, std::uint32_t predicted, std::uint32_t reported);

  /// Engines that were forgotten for a bound.
  std::uint64_t evicted() const { return evicted_; }

 private:
  struct state {
    std::string instance;
    double difference = 0;
    double tokens = 0;
    bool drifting = false;
    /// Requests in a row that speak for the other state.
    notice run;
  };
  state& of(std::string_view instance);

  settings how_;
  std::list<state> states_;  // latest first
  /// The names are the states' own.
  std::map<std::string_view, std::list<state>::iterator> by_instance_;
  std::uint64_t evicted_ = 0;
};

}  // namespace infernex::gateway
