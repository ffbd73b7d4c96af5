#pragma once

#include <map>
#include <set>

#include "monitor/source.hpp"

namespace infernex::monitor {

struct collector_settings {
  std::string node;
  std::uint64_t epoch = 0;
  /// A worse source's reading replaces a better one's that is older than this.
  std::uint32_t stale_ms = 10'000;
  /// A reading older than this is not told any more.
  std::uint32_t forget_ms = 300'000;
  /// A device whose driver says "not ready" for so long has dropped (reference, 1.2).
  std::uint32_t drop_ms = 5'000;
  /// The inventory is told again after this, though it has not changed.
  std::uint32_t inventory_ms = 60'000;
  std::optional<std::uint32_t> expected_devices;
  std::uint32_t max_devices = 256;
};

/// Puts what the readers of a node find together: newest reading of the best source, with its age; codes that came and
/// went as events; devices that hang or have dropped; the inventory. Pure: time is passed in.
class collector {
 public:
  explicit collector(collector_settings how);

  /// `rank`: smaller is better.
  void on_round(fb::HwSource kind, int rank, reading_round&& found, const poll_time& now);
  /// A call for this device has been under way for so long; 0: it has come back.
  void on_busy(std::uint32_t device, fb::HwSource kind, std::uint32_t busy_ms, std::uint32_t deadline_ms,
               const poll_time& now);
  void set_boot(std::string boot_id, std::string kernel);

  /// What there is to say now; events are told once.
  node_report report(const poll_time& now);
  /// Devices over max_devices that were left out, and readings.
  std::uint64_t refused() const { return refused_; }

 private:
  struct kept_reading {
    double value = 0;
    std::uint64_t read_ms = 0;
    int rank = 0;
  };
  struct kept_device {
    fb::HwVendor vendor = fb::HwVendor::Unknown;
    std::string id;
    std::map<std::uint32_t, kept_reading> values;  // by metric << 16 | part
    std::optional<std::vector<std::uint64_t>> codes;
    std::uint64_t codes_ms = 0;
    /// A source takes back only its own.
    std::map<fb::HwSource, std::vector<read_failure>> failures;
    std::optional<std::uint64_t> not_ready_since_ms;
    bool dropped = false;
    bool hung = false;
    std::uint32_t busy_ms = 0;
  };
  kept_device* device_at(std::uint32_t index);
  void keep(std::map<std::uint32_t, kept_reading>& into, const readings& found, int rank, std::uint64_t now_ms) const;
  void follow_codes(std::uint32_t index, kept_device& device, std::vector<std::uint64_t> present, fb::HwSource kind,
                    const poll_time& now);
  void follow_failures(std::uint32_t index, kept_device& device, const std::vector<read_failure>& failures,
                       fb::HwSource kind, const poll_time& now);
  hw_event& add_event(std::uint32_t index, const kept_device& device, fb::HwEventKind kind, fb::HwSource source,
                      const poll_time& now);
  void tell(std::map<std::uint32_t, kept_reading>& from, readings& into, std::uint64_t now_ms) const;
  void keep_inventory(reading_round& found, fb::HwSource kind);
  /// Which device an event is of, by its PCI address; the kernel leaves the function out (`0000:5d:00`).
  void find_device(hw_event& event) const;
  std::optional<hw_inventory> inventory_if_due(const poll_time& now);

  collector_settings how_;
  std::map<std::uint32_t, kept_device> devices_;
  std::map<std::uint32_t, kept_reading> node_values_;
  std::map<std::uint32_t, device_info> infos_;
  std::set<fb::HwSource> sources_;
  std::map<fb::HwSource, std::vector<std::string>> problems_;
  std::string boot_id_;
  std::string kernel_;
  bool inventory_changed_ = true;
  std::uint64_t inventory_told_ms_ = 0;
  std::vector<hw_event> events_;
  node_sample sample_;
  std::uint64_t refused_ = 0;
};

}  // namespace infernex::monitor
