#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/simulator/replay_statistics.hpp"

namespace infernex::simulator {

/// One policy at one load.
struct replay_row {
  std::string policy;
  /// Requests offered, a second (0: all at once); and as a share of full load, where that is known.
  double offered_per_second = 0;
  std::optional<double> load;
  replay_summary seen;
};

/// What one `infernex replay` has to say.
struct replay_report {
  std::string trace;
  /// For people: `8 engines`, `4 prefill + 4 decode`.
  std::string fleet;
  std::uint64_t requests = 0;
  std::uint64_t seed = 0;
  /// TTFT when the trace was recorded, at rate 1.
  std::optional<latency_summary> observed_ttft;
  std::vector<replay_row> rows;
};

/// A table for people, a row a policy and load, and a line for each thing that wants an explanation.
std::string report_text(const replay_report& report);
/// One object, the names of replay_summary as keys; what was not measured is null.
std::string report_json(const replay_report& report);

}  // namespace infernex::simulator
