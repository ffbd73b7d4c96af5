#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/router/load_board.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// What all gateways say they have in flight, per engine. A gateway's newer totals replace its older ones;
/// its silence takes them away.
class life_totals {
 public:
  using engine_name = std::pair<std::string, std::string>;  // model, instance

  explicit life_totals(std::size_t max_gateways, std::size_t max_engines)
      : max_gateways_(max_gateways), max_engines_(max_engines) {}

  /// The engines whose sums have changed. False in `accepted`: a bound was reached.
  std::vector<engine_name> replace(const fb::RequestLife& message, clock_point now, bool& accepted);
  std::vector<engine_name> expire(clock_point now, std::chrono::milliseconds silence);
  /// Silence until now meant nothing.
  void touch(clock_point now);

  load_share sum(const engine_name& engine) const;

 private:
  using shares = std::map<std::string, load_share, std::less<>>;  // by instance
  struct gateway {
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    clock_point last_heard;
    shares totals;
  };
  struct wide_share {
    std::uint64_t requests = 0;
    std::uint64_t prefill_tokens = 0;
    std::uint64_t blocks = 0;
  };
  void add(const std::string& model, const shares& totals, bool take_away, std::vector<engine_name>& changed);

  std::size_t max_gateways_;
  std::size_t max_engines_;
  std::map<std::pair<std::string, std::string>, gateway> gateways_;  // by source id and model
  std::map<engine_name, wide_share> sums_;
};

}  // namespace infernex::router
