#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/device_sample.hpp"

namespace infernex::monitor {

struct poll_time {
  /// Of a clock that only goes forward.
  std::uint64_t steady_ms = 0;
  /// Nanoseconds since 1970.
  std::uint64_t wall_ns = 0;
};

/// What there is to say of one node at one moment.
struct node_report {
  std::string node;
  /// Null: no sample this time. Valid until the next poll.
  const node_sample* sample = nullptr;
  std::vector<hw_event> events;
  std::optional<hw_inventory> inventory;
};

/// Where reports come from: the devices of this node, a simulated fleet, a recording. The monitor's actor asks once an
/// interval and publishes what it gets. poll() must not block: whatever may is done on watched workers.
class report_source {
 public:
  virtual ~report_source() = default;
  virtual void poll(const poll_time& now, const std::function<void(node_report&&)>& each) = 0;
  /// Nothing more will come (a recording that has been played).
  virtual bool ended() const { return false; }
};

/// What one reading of a unit found: everything is optional.
struct reading_round {
  std::vector<device_sample> devices;
  readings node;
  std::vector<hw_event> events;
  std::vector<device_info> infos;
  /// What keeps it from reading, with what to do.
  std::vector<std::string> problems;
};

/// Reads one unit of the node: a device by its driver, the kernel's log, a page. It is called by one thread of its own
/// and may block for as long as its driver does; nothing else waits for it.
class reader {
 public:
  virtual ~reader() = default;
  virtual fb::HwSource kind() const = 0;
  /// For logs and metrics, e.g. `dcmi/3`.
  virtual std::string name() const = 0;
  /// The device whose driver it calls; nothing: not of one device.
  virtual std::optional<std::uint32_t> device() const { return std::nullopt; }
  /// How often, and from when on a call counts as hung.
  virtual std::uint32_t period_ms() const { return 1000; }
  virtual std::uint32_t deadline_ms() const { return 5000; }
  virtual reading_round read() = 0;
};

}  // namespace infernex::monitor
