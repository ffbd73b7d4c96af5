#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/simulator/replay_world.hpp"
#include "messages/result.hpp"

namespace infernex::simulator {

/// What `infernex replay` is told of the fleet, as it stands on the command line.
struct fleet_options {
  /// Either this many aggregated engines, or those two.
  std::uint32_t engines = 4;
  std::uint32_t prefill = 0;
  std::uint32_t decode = 0;
  /// `ENGINE@SECONDS`, `[ROLE@]SECONDS`, `ENGINE=FACTOR`. Engines are numbered from 0: prefill ones first, then decode
  /// ones, then those that were added, in the order they are given.
  std::vector<std::string> failures;
  std::vector<std::string> additions;
  std::vector<std::string> slow;
};

inline constexpr std::uint32_t max_replay_engines = 4096;

/// The engines, all of them as `each` says; its speed is the live engine's. Errors: invalid_config.
result<std::vector<replay_engine_settings>> replay_fleet_of(const fleet_options& options, const settings& each);

/// For people: `8 engines`, `4 prefill + 4 decode, 1 fails, 2 slow`.
std::string describe_fleet(const fleet_options& options);

/// Keys of blocks of `block_tokens` take the place of the engine's own block size, and as much memory stays; a context
/// that is too short for the trace grows to it as far as the memory goes.
void fit_engine(settings& engine, std::uint32_t block_tokens, const trace& requests);

/// Load 100 % is the rate at which goodput falls to this.
inline constexpr double full_load_goodput = 0.95;

/// The highest rate at which `goodput(rate)` is still at least `wanted`, within 2 %: doubled or halved from `start`
/// until it is between two, then the interval is halved. Nothing if it is never so between start / 1024 and start *
/// 1024.
std::optional<double> full_rate(const std::function<double(double)>& goodput, double start,
                                double wanted = full_load_goodput);

}  // namespace infernex::simulator
