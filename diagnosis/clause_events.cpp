#include <algorithm>

#include "diagnosis/patient.hpp"

// From codes, events, failed reads and silence to conditions that hold.
namespace infernex::diagnosis {

namespace {

std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

bool lists(const std::vector<std::uint64_t>& codes, std::uint64_t code) {
  return std::ranges::find(codes, code) != codes.end();
}

}  // namespace

bool patient::is_present(std::uint64_t code) const {
  return std::ranges::any_of(
      codes_, [code](const code_state& s) { return s.from == table::ascend && s.code == code && s.present; });
}

void patient::on_codes(std::span<const std::uint64_t> present, millis read_at, millis now) {
  codes_read_ = std::max(codes_read_, read_at);
  if (present.empty() && codes_.empty()) return;
  for (const auto code : present)
    if (!is_present(code)) set_code(code, true, fb::HwLevel::Unknown, read_at, now);
  std::vector<std::uint64_t> gone;
  for (const auto& one : codes_) {
    // An event may be younger than what the sample knows.
    if (one.from != table::ascend || !one.present || one.since + 1500 > read_at) continue;
    if (std::ranges::find(present, one.code) == present.end()) gone.push_back(one.code);
  }
  for (const auto code : gone) set_code(code, false, fb::HwLevel::Unknown, read_at, now);
}

void patient::set_code(std::uint64_t code, bool present, fb::HwLevel level, millis at, millis now) {
  if (present == is_present(code)) return;
  const level_advice* advice = base_->ascend.advice_of(code);
  if (advice == nullptr && level != fb::HwLevel::Unknown)
    advice = base_->ascend.find_level(level <= fb::HwLevel::Minor ? "NotHandleFault" : "unknown_grave");
  if (advice == nullptr) advice = base_->ascend.find_level("unknown");
  auto* one = note(table::ascend, code, advice, now);
  if (one == nullptr) return;
  one->present = present;
  one->since = at;
  one->last = now;
  if (present) remember({at, code, 0, metric::Unknown, 0, fb::HwEventKind::AscendCode});
  code_clauses(code, at, now);
  settle_codes(now);
}

void patient::code_clauses(std::uint64_t code, millis at, millis now) {
  for (const auto i : plan_->of_code(code)) {
    const auto& codes = plan_->at(i).is->codes;
    const bool any = std::ranges::any_of(codes, [this](std::uint64_t other) { return is_present(other); });
    set_base(i, any ? truth::yes : truth::no, at, now);
  }
}

void patient::on_failures(std::span<const monitor::read_failure> failures, millis now) {
  const auto clauses = plan_->of_kind(clause::kind::failure);
  if (failures.empty() && !failing_) return;
  failing_ = !failures.empty();
  for (const auto i : clauses) {
    const auto& wanted = plan_->at(i).is->failures;
    const bool any = std::ranges::any_of(
        failures, [&](const auto& f) { return std::ranges::find(wanted, std::int64_t{f.code()}) != wanted.end(); });
    set_base(i, any ? truth::yes : truth::no, now, now);
  }
}

void patient::on_event(const fb::HwEventT& event, std::uint32_t key, millis now) {
  using kind = fb::HwEventKind;
  const auto code = event.code.value_or(0);
  if (event.kind == kind::NodeBoot) ++boots_;
  if (event.kind == kind::DeviceReset || event.kind == kind::DriverReload || event.kind == kind::NodeBoot)
    rebase_ = true;
  // A device's codes are the device's affair.
  const bool mine = plan_->of() == scope::device || !event.device;
  if (event.kind == kind::AscendCode) {
    if (!mine) return;
    if (event.assertion == fb::HwAssertion::Cleared) return set_code(code, false, event.level, now, now);
    set_code(code, true, event.level, now, now);
    if (event.assertion == fb::HwAssertion::OneOff) set_code(code, false, event.level, now, now);
    return;
  }
  if (event.assertion != fb::HwAssertion::Cleared) remember({now, code, 0, metric::Unknown, 0, event.kind});
  for (const auto r : plan_->cleared_by(event.kind)) {
    const auto& rule = plan_->rule_at(r);
    for (auto i = rule.first; i < rule.first + rule.any; ++i) {
      // Of the others, the next sample will say whether they are over.
      const auto what = plan_->at(i).is->what;
      if (what != clause::kind::event && what != clause::kind::rise) continue;
      auto& state = clauses_[i];
      state.base = state.now = truth::no;
      if (state.window != none) windows_[state.window].clear();
      std::erase_if(marks_, [i](const mark& m) { return m.clause == i; });
    }
    weigh(r, now, now);
  }
  for (const auto i : plan_->of_event(event.kind)) on_event_clause(i, event, key, now);
  const bool resets =
      event.kind == kind::DeviceReset || event.kind == kind::NodeBoot || event.kind == kind::DriverReload;
  if (resets)
    for (auto& one : codes_)
      if (one.from != table::ascend) one.present = false;
  if (mine && (event.kind == kind::Xid || event.kind == kind::Sxid)) {
    const auto from = event.kind == kind::Xid ? table::xid : table::sxid;
    const auto& known = from == table::xid ? base_->xid : base_->sxid;
    const auto* advice = known.advice_of(code);
    if (advice == nullptr) advice = known.find_level("unknown");
    const bool of_note = advice->grade != severity::Unknown && !plan_->claims(from, code);
    if (auto* one = of_note ? note(from, code, advice, now) : nullptr) one->present = true;
  }
  settle_codes(now);
}

void patient::on_event_clause(plan::index i, const fb::HwEventT& event, std::uint32_t key, millis now) {
  const auto& c = *plan_->at(i).is;
  const auto code = event.code.value_or(0);
  if (!c.codes.empty() && !lists(c.codes, code)) return;
  if (!c.levels.empty() && std::ranges::find(c.levels, event.level) == c.levels.end()) return;
  if (event.assertion == fb::HwAssertion::Cleared) {
    auto& state = clauses_[i];
    if (state.window != none && c.seen == 1) windows_[state.window].clear();
    state.base = truth::no;
    state.now = c.counted() && c.seen > 1 ? state.now : truth::no;
    return weigh(plan_->at(i).rule, now, now);
  }
  if (!c.counted()) return set_base(i, truth::yes, now, now);
  using counting = clause::counting;
  if (c.count == counting::same_unit || c.count == counting::distinct_units) key = hash_of(event.unit);
  if (c.count == counting::distinct_boots) key = boots_;
  occur(i, std::max(1U, event.count), now, code, key);
}

void patient::on_silence(millis silent_for, millis slack, bool judged, millis now) {
  for (const auto i : plan_->of_kind(clause::kind::silent)) {
    const bool silent = silent_for >= std::max(plan_->at(i).is->silence, slack);
    if (silent && !judged) continue;  // nobody else is heard either: it may be us
    set_base(i, silent ? truth::yes : truth::no, now, now);
  }
}

void patient::on_presence(bool present, millis now) {
  for (const auto i : plan_->of_kind(clause::kind::absent)) set_base(i, present ? truth::no : truth::yes, now, now);
}

void patient::on_anomaly(clause::anomaly_name name, bool is_so, millis now) {
  for (const auto i : plan_->of_kind(clause::kind::anomaly))
    if (plan_->at(i).is->anomaly == name) set_base(i, is_so ? truth::yes : truth::no, now, now);
}

void patient::remember(const happening& what) {
  if (happenings_.size() == most_happenings) happenings_.erase(happenings_.begin());
  happenings_.push_back(what);
}

}  // namespace infernex::diagnosis
