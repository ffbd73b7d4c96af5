#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "messages/view.hpp"
#include "monitor/metric.hpp"

namespace infernex::monitor {

/// Metric, part, age and value: 16 bytes, in memory as in the message.
using reading = fb::HwValue;
/// A metric that was asked for and the driver's code instead.
using read_failure = fb::HwFailure;
using hw_event = fb::HwEventT;
using hw_inventory = fb::HwInventoryT;
using device_info = fb::HwDeviceInfoT;

/// Readings in the order of metric, then part, each at most once. Most writers add in that order, which is an append.
class readings {
 public:
  /// Replaces an earlier reading. A value that cannot be one (monitor/metric.hpp) is left out: false.
  bool set(metric id, double value, std::uint16_t part = 0, std::uint32_t age_ms = 0);
  /// The same if there is a value.
  bool set(metric id, const std::optional<double>& value, std::uint16_t part = 0, std::uint32_t age_ms = 0) {
    return value && set(id, *value, part, age_ms);
  }
  void erase(metric id, std::uint16_t part = 0);
  /// Takes what is valid of `from`, in any order.
  void assign(std::span<const reading> from);
  /// Adds to every age, at most to the largest that can be said.
  void grow_older(std::uint32_t by_ms);
  void clear() { all_.clear(); }

  const reading* find(metric id, std::uint16_t part = 0) const;
  std::optional<double> get(metric id, std::uint16_t part = 0) const;
  /// All parts of one metric.
  std::span<const reading> parts(metric id) const;
  std::span<const reading> all() const { return all_; }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }

 private:
  std::vector<reading> all_;
};

/// One device at one moment.
struct device_sample {
  std::uint32_t index = 0;
  fb::HwVendor vendor = fb::HwVendor::Unknown;
  /// VDie id or UUID, where known.
  std::string id;
  readings values;
  /// Ascend fault codes present now. Nothing: not read; empty: none.
  std::optional<std::vector<std::uint64_t>> codes;
  std::uint32_t codes_age_ms = 0;
  std::vector<read_failure> failures;
};

/// A node with its devices at one moment: what a HwSample says.
struct node_sample {
  std::string node;
  std::string source;
  std::uint64_t epoch = 0;
  std::uint64_t sequence = 0;
  /// The node's clock, nanoseconds since 1970.
  std::uint64_t time = 0;
  readings values;
  std::vector<device_sample> devices;

  const device_sample* find(std::uint32_t index) const;
};

/// A message that says all of it, with its file identifier.
flatbuffers::DetachedBuffer pack(const node_sample& sample);

/// What a verified message says, into `into`, whose memory is used again. Readings that cannot be any are left out and
/// counted: the result. A device that is there twice counts with its first.
std::size_t unpack(const fb::HwSample& message, node_sample& into);

}  // namespace infernex::monitor
