#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "messages/registry.hpp"

namespace infernex::engine {

enum class probe_outcome : std::uint8_t {
  /// There is an HTTP status.
  answered,
  /// Nobody listens on the port: the process is gone.
  refused,
  /// No answer in time, or the connection broke.
  failed,
};

struct health_probe {
  probe_outcome outcome = probe_outcome::failed;
  unsigned status = 0;
  /// Wall clock, nanoseconds since 1970: the epoch where the engine gives none.
  std::uint64_t wall_ns = 0;
};

struct health_limits {
  std::uint32_t refusals_to_down = 2;
  /// Failures of any kind in a row.
  std::uint32_t failures_to_down = 3;
  std::chrono::milliseconds probe_interval{500};
  /// After the first failure the next probe comes sooner, so that an engine that was killed is down within
  /// probe_interval + suspicion_pause.
  std::chrono::milliseconds suspicion_pause{100};
};

/// How long to wait from the end of one probe to the next, after so many failures in a row.
std::chrono::milliseconds probe_pause(const health_limits& limits, std::uint32_t failures_in_a_row);

/// An engine's state from the outcomes of its health probes, and its epoch: when the present process (and
/// so its cache) began.
class engine_state {
 public:
  struct change {
    bool state = false;
    bool epoch = false;
  };

  explicit engine_state(health_limits limits) : limits_(limits) {}

  /// `process_start`: process_start_time_seconds, if the metrics were read with the probe.
  change on_probe(const health_probe& probe, std::optional<double> process_start);

  fb::EngineState state() const { return state_; }
  /// One line for people.
  const std::string& reason() const { return reason_; }
  /// Unset until the engine was first ready.
  std::optional<std::uint64_t> epoch() const { return epoch_; }
  std::uint32_t failures_in_a_row() const { return failures_; }

 private:
  bool enter(fb::EngineState next, std::string reason);
  change on_ready(std::optional<double> process_start, std::uint64_t wall_ns);
  void begin_epoch(std::optional<double> process_start, std::uint64_t wall_ns);

  health_limits limits_;
  fb::EngineState state_ = fb::EngineState::Unknown;
  std::string reason_ = "not probed yet";
  std::optional<std::uint64_t> epoch_;
  std::optional<double> process_start_;
  std::uint32_t failures_ = 0;
  std::uint32_t refusals_ = 0;
  bool refused_since_ready_ = false;
};

}  // namespace infernex::engine
