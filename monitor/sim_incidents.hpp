#pragma once

#include <cstdint>

#include "monitor/sim_device.hpp"
#include "monitor/sim_journal.hpp"

namespace infernex::monitor {

/// What happens to healthy devices and is no fault of theirs: reads that fail, readings that jump, gaps of a second or
/// three, work that waits, errors of applications, corrected errors, a driver loaded anew. One after another.
class sim_incidents {
 public:
  /// Sets the influence of this step, and tells what becomes known of it.
  void step(sim_device& device, std::uint64_t now_ms, sim_random& random, sim_journal& journal);

 private:
  enum class kind : std::uint8_t {
    none,
    failed_read,
    spike,
    gap,
    stall,
    slow_clock,
    minor_code,
    port_blip,
    application,
    corrected,
    signal,
    reload
  };
  void begin(kind what, sim_device& device, std::uint64_t now_ms, sim_random& random, sim_journal& journal);
  void end(sim_device& device, sim_journal& journal);
  static kind draw(const sim_device& device, sim_random& random);

  kind now_ = kind::none;
  std::uint64_t until_ms_ = 0;
  std::uint64_t next_ms_ = 0;
  bool begun_ = false;
};

}  // namespace infernex::monitor
