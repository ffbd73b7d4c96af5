#pragma once

// Private to the engine: what it keeps of a device and of a node.

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/engine.hpp"

namespace infernex::diagnosis {

inline constexpr std::size_t vendors = static_cast<std::size_t>(fb::HwVendor::MAX) + 1;

/// The ids of what stands.
using open_ids = std::vector<std::pair<condition_key, std::string>>;

struct engine::device {
  device(std::uint32_t number, fb::HwVendor of, const plan& rules, const knowledge& base)
      : index(number), vendor(of), body(rules, base) {}
  std::uint32_t index;
  fb::HwVendor vendor;
  patient body;
  thermal_watch heat;
  trace curves;
  millis last_seen = 0;
  std::string id;
  std::string bus_id;
  std::string model;
  std::string driver;
  std::string firmware;
  open_ids ids;
};

struct engine::node {
  node(std::string called, const plan& rules, const knowledge& base) : name(std::move(called)), body(rules, base) {}
  std::string name;
  patient body;
  std::vector<std::unique_ptr<device>> devices;  // by index; null: never heard of
  std::array<model_range, vendors> ranges{};
  millis last_seen = 0;
  millis period = 1000;
  millis offset = 0;
  millis window_ends = 0;
  open_ids ids;
};

}  // namespace infernex::diagnosis
