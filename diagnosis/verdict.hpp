#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/knowledge.hpp"

namespace infernex::diagnosis {

/// One thing a verdict rests on: messages/verdict.fbs. Times: nanoseconds since 1970 by the node's clock.
struct evidence {
  static constexpr std::size_t most_samples = 64;
  metric id = metric::Unknown;
  std::uint16_t part = 0;
  fb::HwEventKind event = fb::HwEventKind::Unknown;
  std::optional<std::uint64_t> code;
  std::string text;
  std::string unit;
  std::vector<std::uint64_t> times;
  std::vector<double> values;
  millis window = 0;
  std::optional<double> threshold;
  std::optional<double> peer_median;
  std::uint64_t count = 0;
};

/// Whom it is about, as far as it is known.
struct subject_of_verdict {
  std::string node;
  /// Nothing: the node as a whole.
  std::optional<std::uint32_t> device;
  fb::HwVendor vendor = fb::HwVendor::Unknown;
  std::string device_id;
  std::string bus_id;
  std::string model;
  std::string driver;
  std::string firmware;
};

struct verdict {
  subject_of_verdict who;
  std::string id;
  fb::VerdictState state = fb::VerdictState::Unknown;
  severity grade = severity::Unknown;
  action act = action::Ok;
  std::string pattern;
  std::string title;
  std::string rule;
  std::string knowledge;
  std::optional<double> confidence;
  std::uint64_t raised_at = 0;
  std::uint64_t changed_at = 0;
  std::uint64_t cleared_at = 0;
  std::vector<evidence> grounds;
  std::vector<std::string> missing;
  std::vector<std::string> rules_out;
  std::vector<std::string> treatment;
  std::string clears_when;
  /// Id of the verdict whose symptom it is.
  std::string suppressed_by;
  std::string source;
  std::string overridden_by;

  bool stands() const { return state == fb::VerdictState::Raised || state == fb::VerdictState::Changed; }
};

/// What stands at a device, and the gravest of it: what a router goes by. Symptoms count for nothing.
struct standing {
  severity grade = severity::Unknown;
  action act = action::Ok;
  std::vector<fb::OpenVerdictT> open;
};

/// A message that says it.
fb::VerdictT to_message(const verdict& what, const standing& of_device);

}  // namespace infernex::diagnosis
