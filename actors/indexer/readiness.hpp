#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace infernex::indexer {

struct readiness_settings {
  /// "Every source is exact" means something only when no further source has been heard of for so long: engines
  /// announce themselves to a newcomer within milliseconds of each other.
  std::chrono::milliseconds listen_first{250};
  /// The same while none is known at all: longer than engines take to announce themselves in turn (2 s).
  std::chrono::milliseconds listen_alone{2'500};
  /// After this long a replica answers although some source is not exact: an engine that can never be followed must
  /// not keep the index from being asked about the others. Counted from the first connection to the bus.
  std::chrono::milliseconds patience{30'000};
};

/// When a new replica may answer: the bus is connected and every source known so far is exact, or its patience is
/// over. Once so, it stays so: a source that is lost later shows in each answer, and must not take all replicas out
/// at once. Pure: time is passed in.
class readiness {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  explicit readiness(readiness_settings settings) : settings_(settings) {}

  void on_bus(bool connected, time_point now);
  /// `waiting`: sources that should be exact and are not. True: caught up, for the first time.
  bool on_sources(std::size_t known, std::size_t waiting, time_point now);

  bool caught_up() const { return caught_up_; }
  /// One line for people.
  const std::string& reason() const { return reason_; }

 private:
  readiness_settings settings_;
  std::optional<time_point> began_;
  std::optional<time_point> connected_since_;
  std::size_t known_ = 0;
  time_point newest_at_;
  bool caught_up_ = false;
  std::string reason_ = "the bus is not connected yet";
};

}  // namespace infernex::indexer
