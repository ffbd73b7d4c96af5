#pragma once

#include <string>
#include <vector>

#include "monitor/device_sample.hpp"

namespace infernex::monitor {

struct sim_device;

/// Where a node's parts put the events of a step.
class sim_journal {
 public:
  explicit sim_journal(std::string node) : node_(std::move(node)) {}

  void begin_step(std::uint64_t time_ns) {
    time_ns_ = time_ns;
    events_.clear();
  }
  /// An event of the device with who and when filled in.
  hw_event& add(const sim_device& device, fb::HwEventKind kind, fb::HwSource source);
  /// Also enters it into, or takes it from, the codes present at the device.
  void code(sim_device& device, std::uint64_t code, fb::HwAssertion assertion, fb::HwLevel level);
  /// `about`: what the kernel's line says after the number.
  void xid(const sim_device& device, std::uint32_t number, const std::string& about, std::uint32_t pid = 0);
  void port(const sim_device& device, bool up);

  const std::vector<hw_event>& events() const { return events_; }
  std::uint64_t time_ns() const { return time_ns_; }

 private:
  std::string node_;
  std::uint64_t time_ns_ = 0;
  std::vector<hw_event> events_;
};

}  // namespace infernex::monitor
