#pragma once

#include "monitor/recording.hpp"
#include "monitor/source.hpp"

namespace infernex::monitor {

/// A recording in place of devices: what was said then is said again at its distance from the start, `speed` times as
/// fast, with the times of then. What is no message of the hardware half is counted and left out.
class replay_source final : public report_source {
 public:
  replay_source(recording_reader from, double speed) : from_(std::move(from)), speed_(speed) {}
  void poll(const poll_time& now, const std::function<void(node_report&&)>& each) override;
  bool ended() const override { return ended_; }
  std::uint64_t refused() const { return refused_; }

 private:
  bool due(const poll_time& now);
  void tell(const std::function<void(node_report&&)>& each);

  recording_reader from_;
  double speed_;
  recorded_message next_;
  bool has_next_ = false;
  bool ended_ = false;
  bool begun_ = false;
  std::uint64_t began_ms_ = 0;
  std::uint64_t began_ns_ = 0;
  std::uint64_t refused_ = 0;
  node_sample sample_;
};

}  // namespace infernex::monitor
