#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "monitor/metric.hpp"

namespace infernex::diagnosis {

using monitor::metric;
using severity = fb::VerdictSeverity;
using action = fb::VerdictAction;

/// Milliseconds; instants count from 1970 by the clock of whoever receives the samples, which never goes back.
using millis = std::int64_t;

/// One thing that can be so or not be so at a device. Which fields count depends on `what`.
struct clause {
  enum class kind : std::uint8_t { reading, rise, code, event, failure, silent, absent, anomaly };
  enum class comparison : std::uint8_t { at_least, at_most, above, below, equals, differs, bits };
  /// What a limit may be relative to, besides another metric.
  enum class reference : std::uint8_t {
    none,
    of_metric,
    /// The most that any device of the same model on this node has shown.
    most_of_node,
    /// Idle power of the model on this node, and a tenth of what lies between it and the most.
    idle_power_10
  };
  /// What is counted of occurrences.
  enum class counting : std::uint8_t { each, same_unit, distinct_units, distinct_devices, distinct_boots };
  enum class formula : std::uint8_t { none, pcie_replays };
  enum class anomaly_name : std::uint8_t { warmer_than_peers, temperature_drift, power_unlike_peers };

  kind what = kind::reading;
  metric of = metric::Unknown;
  comparison compare = comparison::at_least;
  /// The limit is `limit` or, with a reference, reference * times + plus; `limit` then stands for a missing one if
  /// it is not 0.
  double limit = 0;
  reference relative = reference::none;
  metric to = metric::Unknown;
  double times = 1;
  double plus = 0;
  /// Once true it stays so until the value is this much on the other side.
  double slack = 0;
  formula by_formula = formula::none;
  /// In `while`: counts as true while nobody knows.
  bool or_unknown = false;

  /// Ascend codes, XIDs, SXIDs, driver errors; empty: any.
  std::vector<std::uint64_t> codes;
  std::vector<std::int64_t> failures;
  fb::HwEventKind event = fb::HwEventKind::Unknown;
  std::vector<fb::HwLevel> levels;
  anomaly_name anomaly = anomaly_name::warmer_than_peers;
  millis silence = 0;

  /// Occurrences are counted if `within` is set: at least `seen` of them within it, each having lasted `lasting`; while
  /// it lasts, one more every `every`; those closer than `burst` are one.
  std::uint32_t seen = 1;
  millis within = 0;
  millis lasting = 0;
  millis every = 0;
  millis burst = 0;
  std::vector<std::uint64_t> sticky;
  millis sticky_burst = 0;
  counting count = counting::each;

  bool counted() const { return within > 0; }
};

/// What a verdict becomes when it lasts.
struct escalation {
  millis after = 0;
  severity grade = severity::Unknown;
  action act = action::Ok;
};

enum class scope : std::uint8_t { device, node };

struct rule {
  std::string id;
  /// Of the table in the literature notes; 0: ours.
  std::uint32_t number = 0;
  std::string pattern;
  std::string title;
  /// Unknown: any.
  fb::HwVendor vendor = fb::HwVendor::Unknown;
  scope at = scope::device;
  severity grade = severity::Warning;
  action act = action::Watch;
  double confidence = 0.5;
  /// True while one of `any` and all of `meanwhile` are.
  std::vector<clause> any;
  std::vector<clause> meanwhile;
  millis raise_after = 0;
  millis clear_after = 0;
  std::optional<escalation> then;
  std::vector<fb::HwEventKind> cleared_by;
  /// Rules whose verdicts are its symptoms; `*`: all at the device.
  std::vector<std::string> suppresses;
  std::vector<std::string> treatment;
  std::vector<std::string> rules_out;
  std::string clears_when;
  std::string source;
  bool enabled = true;
  /// An operator changed it: what they say of why, or where.
  std::string overridden_by;
};

/// What a level of codes asks for.
struct level_advice {
  std::string level;
  severity grade = severity::Unknown;
  action act = action::Ok;
  std::string means;
  std::vector<std::string> treatment;
  std::optional<escalation> then;
  /// Of what nobody withdraws; 0: a day.
  millis clear_after = 0;
};

/// Numbers of one kind: the level of each, and a text where one is public.
struct code_table {
  std::unordered_map<std::uint64_t, std::uint16_t> level_of;  // index into levels
  std::unordered_map<std::uint64_t, std::string> text_of;
  std::vector<level_advice> levels;

  const level_advice* find_level(std::string_view name) const;
  /// Null: not listed.
  const level_advice* advice_of(std::uint64_t code) const;
  std::string_view text(std::uint64_t code) const;
};

/// All that diagnosis knows. Immutable once loaded: a reload makes a new one.
struct knowledge {
  std::string edition;
  std::vector<rule> rules;
  code_table ascend;
  code_table xid;
  code_table sxid;

  const rule* find(std::string_view id) const;
};

/// How rules are told of codes: upper-case hexadecimal without leading zeros.
std::string render_ascend_code(std::uint64_t code);

std::string_view name(severity grade);
std::string_view name(action act);

}  // namespace infernex::diagnosis
