#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/simulator/openai_request.hpp"

namespace infernex::simulator {

/// What can be made to go wrong. Of a request: reset (the connection breaks), error500, error503, hang (no answer until
/// the client leaves), die (the engine ends in the middle of it), cut (only its connection does), recomputed. Of a
/// transfer: transfer (the KV is not sent), drop_metaserver (the decode engine does not ask). Of the engine, at once:
/// refuse (no listener for a while), restart, slow.
enum class fault_kind : std::uint8_t {
  reset,
  error500,
  error503,
  hang,
  die,
  cut,
  recomputed,
  transfer,
  drop_metaserver,
  refuse,
  restart,
  slow
};
std::string_view name(fault_kind kind);

/// Where die and cut strike: while the prompt is computed, or once so many tokens have been sent.
enum class fault_moment : std::uint8_t { prefill, token };

struct fault_rule {
  fault_kind kind = fault_kind::error500;
  /// How often it strikes; unset: until it is cleared.
  std::optional<std::uint32_t> count;
  /// Of each request that could be struck.
  double probability = 1;
  std::uint64_t seed = 0;
  fault_moment when = fault_moment::token;
  /// die, cut, recomputed: tokens sent before.
  std::uint32_t after_tokens = 0;
  /// slow.
  double factor = 1;
  /// die, restart, refuse: for how long nobody listens. With `exit`: the process ends.
  std::uint32_t down_ms = 500;
  bool exit = false;

  bool of_request() const { return kind <= fault_kind::recomputed; }
  bool at_once() const { return kind >= fault_kind::refuse; }
};

/// A body of POST /sim/faults.
parsed<fault_rule> parse_fault(std::string_view body);

/// The armed faults. Whether one strikes follows from its seed and from how many requests it has seen.
class fault_book {
 public:
  static constexpr std::size_t most_rules = 64;

  /// False: too many are armed.
  bool arm(fault_rule rule);
  void clear() { rules_.clear(); }
  /// A request begins: the fault that strikes it, if one does. Of several the one that was armed first.
  std::optional<fault_rule> strike_request();
  /// The same for one kind that is not of requests.
  std::optional<fault_rule> strike(fault_kind kind);
  /// `{"faults":[{"fault","left","struck"}]}`
  std::string render() const;

 private:
  struct armed {
    fault_rule rule;
    std::uint64_t seen = 0;
    std::uint32_t struck = 0;
  };
  static bool strikes(armed& one);
  template <class Wanted>
  std::optional<fault_rule> first(Wanted wanted);

  std::vector<armed> rules_;
};

}  // namespace infernex::simulator
