#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "diagnosis/plan.hpp"
#include "diagnosis/window_count.hpp"
#include "monitor/device_sample.hpp"

namespace infernex::diagnosis {

/// What a condition is about: a rule of the plan, or a number of a table.
struct condition_key {
  std::optional<table> from;
  plan::index rule = 0;
  std::uint64_t code = 0;
  friend bool operator==(const condition_key&, const condition_key&) = default;
};

/// What became of a verdict.
struct condition_change {
  enum class kind : std::uint8_t { raised, changed, cleared };
  kind what = kind::raised;
  condition_key key;
  /// Of whose symptom it is; nothing: it stands for itself.
  std::optional<condition_key> cause;
  severity grade = severity::Unknown;
  action act = action::Ok;
  millis at = 0;
};

/// The last value of a metric's part, and when it was read.
struct slot {
  double value = 0;
  millis read_at = 0;
  metric id = metric::Unknown;
  std::uint16_t part = 0;
};

/// Something that happened: an event, a code that came, a count that rose. For evidence.
struct happening {
  millis at = 0;
  std::uint64_t code = 0;
  double value = 0;
  metric id = metric::Unknown;
  std::uint16_t part = 0;
  fb::HwEventKind event = fb::HwEventKind::Unknown;
};

/// What limits may be relative to, of the devices of one model on a node.
struct model_range {
  double most_memory = 0;
  double least_power = 0;
  double most_power = 0;
};

/// One device, or one node, under observation: values, open conditions, what happened lately. Knows no other device.
class patient {
 public:
  static constexpr std::size_t most_slots = 192;
  static constexpr std::size_t most_codes = 32;
  static constexpr std::size_t most_happenings = 64;
  /// Readings older than this say nothing of now.
  static constexpr millis stale_after = 150'000;
  /// What comes up so soon after its cause was cleared is still its symptom.
  static constexpr millis aftermath = 120'000;

  patient(const plan& rules, const knowledge& base);

  void on_readings(std::span<const monitor::reading> values, const model_range& peers, millis now);
  void on_codes(std::span<const std::uint64_t> present, millis read_at, millis now);
  void on_failures(std::span<const monitor::read_failure> failures, millis now);
  /// `key`: the device it happened to, for what is counted by device.
  void on_event(const fb::HwEventT& event, std::uint32_t key, millis now);
  void on_silence(millis silent_for, millis slack, bool judged, millis now);
  void on_presence(bool present, millis now);
  void on_anomaly(clause::anomaly_name name, bool is_so, millis now);
  /// What time alone brings about.
  void advance(millis now);
  /// Forgets everything that was measured: another device is in its place, or other rules are.
  void close_all(millis now);

  std::vector<condition_change> take_changes() { return std::exchange(changes_, {}); }
  bool has_changes() const { return !changes_.empty(); }
  const plan& rules() const { return *plan_; }
  const slot* find(metric id, std::uint16_t part = 0) const;
  std::span<const slot> slots() const { return slots_; }
  std::span<const happening> happenings() const { return happenings_; }
  /// Codes over the bound since the last call.
  std::uint32_t take_shed() { return std::exchange(shed_, 0U); }
  /// Occurrences counted for the clause within its window.
  std::uint64_t counted(plan::index clause, millis now);
  bool holds(plan::index clause) const { return clauses_[clause].now == truth::yes; }
  std::size_t bytes() const;

 private:
  enum class truth : std::uint8_t { no, yes, unknown };
  static constexpr std::uint8_t none = 255;
  struct clause_state {
    millis since = 0;
    millis last = 0;
    truth base = truth::unknown;
    truth now = truth::unknown;
    std::uint8_t window = none;
    bool aging = false;
  };
  struct rule_state {
    millis since = 0;
    millis opened = 0;
    millis closed = 0;
    std::optional<condition_key> cause;
    bool holds = false;
    bool open = false;
    bool escalated = false;
    bool pending = false;
  };
  struct code_state {
    table from = table::ascend;
    std::uint64_t code = 0;
    millis since = 0;
    millis last = 0;
    const level_advice* advice = nullptr;
    std::optional<condition_key> cause;
    bool present = false;
    bool open = false;
    bool escalated = false;
  };
  /// Of occurrences that are told apart by what they hit.
  struct mark {
    millis at = 0;
    std::uint32_t key = 0;
    plan::index clause = 0;
  };

  // clause_state.cpp, clause_events.cpp: from readings and events to conditions
  void touch(plan::index i, const slot& changed, double old, millis elapsed, bool first, millis now);
  truth judge(const clause& c, truth before) const;
  std::optional<double> limit_of(const clause& c) const;
  void set_base(plan::index i, truth base, millis at, millis now);
  void occur(plan::index i, std::uint32_t n, millis now, std::uint64_t code = 0, std::uint32_t key = 0);
  void recount(plan::index i, millis now);
  bool enough(const clause& c, plan::index i, millis now);
  std::uint64_t marks_of(const clause& c, plan::index i, millis now);
  void on_event_clause(plan::index i, const fb::HwEventT& event, std::uint32_t key, millis now);
  void set_code(std::uint64_t code, bool present, fb::HwLevel level, millis at, millis now);
  void code_clauses(std::uint64_t code, millis at, millis now);
  bool is_present(std::uint64_t code) const;
  void remember(const happening& what);
  void age(millis now);

  // patient.cpp: from conditions to verdicts
  void weigh(plan::index rule, millis at, millis now);
  millis newest(const plan::planned_rule& r, bool holds, millis now) const;
  void settle(plan::index rule, millis now);
  void open(plan::index rule, millis now);
  void close(plan::index rule, millis now);
  void open(code_state& one, millis now);
  void close(code_state& one, millis now);
  code_state* note(table from, std::uint64_t code, const level_advice* advice, millis now);
  void settle_codes(millis now);
  void keep_waiting(plan::index rule);
  std::optional<condition_key> cause_of(const condition_key& key, millis now) const;
  bool suppresses(const plan::planned_rule& root, const condition_key& key) const;
  void adopt_symptoms(plan::index root, millis now);
  void free_symptoms(millis now);
  void report(condition_change::kind what, const condition_key& key, severity grade, action act,
              const std::optional<condition_key>& cause, millis now);
  severity grade_of(plan::index rule) const;
  action act_of(plan::index rule) const;

  const plan* plan_;
  const knowledge* base_;
  model_range peers_;
  std::vector<slot> slots_;
  std::vector<clause_state> clauses_;
  std::vector<rule_state> rules_;
  std::vector<code_state> codes_;
  std::vector<window_count> windows_;
  std::vector<mark> marks_;
  std::vector<happening> happenings_;
  std::vector<plan::index> pending_;
  std::vector<plan::index> aging_;
  std::vector<condition_change> changes_;
  millis codes_read_ = 0;
  millis next_aging_ = 0;
  std::uint32_t boots_ = 0;
  std::uint32_t open_symptoms_ = 0;
  bool codes_open_ = false;
  /// After a reset counts begin anew: the next reading is only a baseline.
  bool rebase_ = false;
  bool failing_ = false;
  std::uint32_t shed_ = 0;
};

}  // namespace infernex::diagnosis
