#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/router/load_board.hpp"
#include "actors/router/topology.hpp"
#include "messages/published.hpp"
#include "messages/registry.hpp"

namespace infernex::router {

/// Whether verdicts on accelerators change where requests go, or are only shown.
enum class verdict_use : std::uint8_t { act, show };

struct fleet_settings {
  /// An engine whose agent is silent for this long is down.
  std::chrono::milliseconds silence{6'000};
  /// A down engine is forgotten after this.
  std::chrono::milliseconds forget{60'000};
  /// Gateway totals expire after this much silence.
  std::chrono::milliseconds life_silence{5'000};
  verdict_use verdicts = verdict_use::act;
  /// At most this share of a model's ready engines of one role is isolated at once, and never the last; the others are
  /// served on, and an alert is due.
  double max_isolated_share = 0.5;
  /// What the score of an engine is multiplied by while a verdict says "degrade".
  double degraded_score = 0.5;
  /// A verdict that nobody has repeated for so long is let go.
  std::chrono::milliseconds verdict_silence{120'000};
  /// Engines and gateways tracked at most; above, announcements are refused and counted.
  std::uint32_t max_engines = 4096;
  std::uint32_t max_gateways = 1024;
};

/// Something that a log line or a metric is due for.
struct fleet_event {
  std::string model;
  std::string instance;
  fb::EngineState from = fb::EngineState::Unknown;
  fb::EngineState to = fb::EngineState::Unknown;
  std::string reason;
};

/// What is done about an engine's accelerators has changed.
struct health_event {
  std::string model;
  std::string instance;
  engine_health now;
};

/// Turns announcements, loads and life messages into a topology and a load board. One owner calls it; any
/// thread reads what it publishes. While the bus is down nothing expires, for silence then says nothing
/// of the engines; after it is back they get one full silence period.
class fleet {
 public:
  explicit fleet(fleet_settings settings = {});
  ~fleet();

  /// Each returns what changed of engines' states, empty if nothing did. An older epoch or sequence of a
  /// source is ignored.
  std::vector<fleet_event> on_announce(const fb::EngineAnnounce& message, clock_point now);
  void on_load(const fb::EngineLoad& message, clock_point now);
  /// `own_source`: the origin id of this process's own gateway, whose totals are on the board already.
  void on_life(const fb::RequestLife& message, clock_point now, std::string_view own_source = {});
  void on_verdict(const fb::Verdict& message, clock_point now);
  std::vector<fleet_event> on_tick(clock_point now);
  void on_bus(bool connected, clock_point now);

  const published<topology>& topologies() const;
  load_board& board();

  /// What became of engines' health since this was asked last.
  std::vector<health_event> take_health_events();
  /// Engines that are isolated, and those that are not though a verdict asks for it.
  struct isolation_count {
    std::size_t isolated = 0;
    std::size_t withheld = 0;
  };
  isolation_count isolations() const;

  /// Messages refused because a bound was reached.
  std::uint64_t refused() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace infernex::router
