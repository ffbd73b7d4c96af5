#include "diagnosis/patient.hpp"

#include <algorithm>

// From conditions that hold to verdicts: raised and cleared with delays of their own, symptoms of others or not.
namespace infernex::diagnosis {

namespace {

/// What nobody withdraws is over after a day.
constexpr millis usual_clear_after = 86'400'000;

condition_key key_of(plan::index rule) { return {std::nullopt, rule, 0}; }

}  // namespace

patient::patient(const plan& rules, const knowledge& base) : plan_(&rules), base_(&base) {
  clauses_.resize(rules.clauses().size());
  rules_.resize(rules.rules().size());
}

void patient::weigh(plan::index r, millis at, millis now) {
  const auto& rule = plan_->rule_at(r);
  const auto first = clauses_.begin() + rule.first;
  const bool any = std::any_of(first, first + rule.any, [](const clause_state& c) { return c.now == truth::yes; });
  bool all = true;
  for (auto i = rule.first + rule.any; all && i < rule.first + rule.any + rule.meanwhile; ++i) {
    const auto& c = clauses_[static_cast<std::size_t>(i)];
    all = c.now == truth::yes || (c.now == truth::unknown && plan_->at(static_cast<plan::index>(i)).is->or_unknown);
  }
  auto& state = rules_[r];
  if (state.holds == (any && all)) return;
  state.holds = any && all;
  state.since = at;
  settle(r, now);
}

/// When what the rule goes by was last read: a value that is only repeated proves nothing.
millis patient::newest(const plan::planned_rule& r, bool holds, millis now) const {
  millis newest = 0;
  for (auto i = r.first; i < r.first + r.any; ++i) {
    const auto& c = *plan_->at(i).is;
    if (holds && clauses_[i].now != truth::yes) continue;
    if (c.counted()) return now;
    if (c.what == clause::kind::reading) {
      if (const auto* s = find(c.of)) newest = std::max(newest, s->read_at);
    } else if (c.what == clause::kind::code) {
      newest = std::max(newest, codes_read_);
    } else {
      return now;
    }
  }
  return newest;
}

void patient::settle(plan::index r, millis now) {
  auto& state = rules_[r];
  const auto& planned = plan_->rule_at(r);
  const auto& rule = *planned.is;
  if (state.holds != state.open) {
    const auto wait = state.holds ? rule.raise_after : rule.clear_after;
    if (wait == 0 || newest(planned, state.holds, now) - state.since >= wait)
      state.holds ? open(r, now) : close(r, now);
    else
      keep_waiting(r);
  }
  if (!state.open || !rule.then || state.escalated) return;
  if (now - state.opened < rule.then->after) return keep_waiting(r);
  state.escalated = true;
  report(condition_change::kind::changed, key_of(r), grade_of(r), act_of(r), state.cause, now);
}

void patient::keep_waiting(plan::index r) {
  if (std::exchange(rules_[r].pending, true)) return;
  pending_.push_back(r);
}

severity patient::grade_of(plan::index r) const {
  const auto& rule = *plan_->rule_at(r).is;
  return rules_[r].escalated ? std::max(rule.grade, rule.then->grade) : rule.grade;
}

action patient::act_of(plan::index r) const {
  const auto& rule = *plan_->rule_at(r).is;
  return rules_[r].escalated ? std::max(rule.act, rule.then->act) : rule.act;
}

void patient::open(plan::index r, millis now) {
  auto& state = rules_[r];
  state.open = true;
  state.escalated = false;
  state.opened = now;
  state.cause = cause_of(key_of(r), now);
  open_symptoms_ += state.cause.has_value();
  report(condition_change::kind::raised, key_of(r), grade_of(r), act_of(r), state.cause, now);
  if (!state.cause) adopt_symptoms(r, now);
}

void patient::close(plan::index r, millis now) {
  auto& state = rules_[r];
  state.open = false;
  state.closed = now;
  open_symptoms_ -= state.cause.has_value();
  report(condition_change::kind::cleared, key_of(r), grade_of(r), act_of(r), state.cause, now);
  state.cause.reset();
}

bool patient::suppresses(const plan::planned_rule& root, const condition_key& key) const {
  return key.from ? root.suppresses_table[static_cast<std::size_t>(*key.from)] : root.suppresses.test(key.rule);
}

std::optional<condition_key> patient::cause_of(const condition_key& key, millis now) const {
  for (plan::index q = 0; q < rules_.size(); ++q) {
    const auto& root = rules_[q];
    const bool fresh = root.open || (root.closed > 0 && now - root.closed < aftermath);
    if (fresh && !root.cause && suppresses(plan_->rule_at(q), key)) return key_of(q);
  }
  return std::nullopt;
}

void patient::adopt_symptoms(plan::index root, millis now) {
  const auto& planned = plan_->rule_at(root);
  if (planned.is->suppresses.empty()) return;
  const auto cause = key_of(root);
  for (plan::index r = 0; r < rules_.size(); ++r) {
    auto& state = rules_[r];
    if (!state.open || state.cause || !planned.suppresses.test(r)) continue;
    state.cause = cause;
    ++open_symptoms_;
    report(condition_change::kind::changed, key_of(r), grade_of(r), act_of(r), cause, now);
  }
  for (auto& one : codes_) {
    if (!one.open || one.cause || !planned.suppresses_table[static_cast<std::size_t>(one.from)]) continue;
    one.cause = cause;
    ++open_symptoms_;
    report(condition_change::kind::changed, {one.from, 0, one.code}, one.advice->grade, one.advice->act, cause, now);
  }
}

/// What outlives its cause stands for itself.
void patient::free_symptoms(millis now) {
  for (plan::index r = 0; r < rules_.size(); ++r) {
    auto& state = rules_[r];
    if (!state.open || !state.cause || cause_of(key_of(r), now)) continue;
    state.cause.reset();
    --open_symptoms_;
    report(condition_change::kind::changed, key_of(r), grade_of(r), act_of(r), std::nullopt, now);
  }
  for (auto& one : codes_) {
    const condition_key key{one.from, 0, one.code};
    if (!one.open || !one.cause || cause_of(key, now)) continue;
    one.cause.reset();
    --open_symptoms_;
    report(condition_change::kind::changed, key, one.advice->grade, one.advice->act, std::nullopt, now);
  }
}

void patient::report(condition_change::kind what, const condition_key& key, severity grade, action act,
                     const std::optional<condition_key>& cause, millis now) {
  changes_.push_back({what, key, cause, grade, act, now});
}

patient::code_state* patient::note(table from, std::uint64_t code, const level_advice* advice, millis now) {
  for (auto& one : codes_)
    if (one.from == from && one.code == code) {
      one.last = now;
      return &one;
    }
  if (codes_.size() == most_codes) {
    const auto idle = std::ranges::find_if(codes_, [](const code_state& s) { return !s.open && !s.present; });
    if (idle == codes_.end()) {
      ++shed_;
      return nullptr;
    }
    codes_.erase(idle);
  }
  code_state fresh;
  fresh.from = from;
  fresh.code = code;
  fresh.since = fresh.last = now;
  fresh.advice = advice;
  return &codes_.emplace_back(fresh);
}

void patient::open(code_state& one, millis now) {
  const condition_key key{one.from, 0, one.code};
  one.open = true;
  one.escalated = false;
  one.since = now;
  one.cause = cause_of(key, now);
  open_symptoms_ += one.cause.has_value();
  report(condition_change::kind::raised, key, one.advice->grade, one.advice->act, one.cause, now);
}

void patient::close(code_state& one, millis now) {
  one.open = false;
  open_symptoms_ -= one.cause.has_value();
  const auto& then = one.advice->then;
  const bool then_so = one.escalated && then;
  report(condition_change::kind::cleared, {one.from, 0, one.code}, then_so ? then->grade : one.advice->grade,
         then_so ? then->act : one.advice->act, one.cause, now);
  one.cause.reset();
}

void patient::settle_codes(millis now) {
  codes_open_ = false;
  for (auto& one : codes_) {
    if (one.advice == nullptr || one.advice->grade == severity::Unknown) continue;
    const auto lasts = one.advice->clear_after > 0 ? one.advice->clear_after : usual_clear_after;
    if (one.from != table::ascend && now - one.last >= lasts) one.present = false;
    if (one.present && !one.open && !plan_->claims(one.from, one.code)) open(one, now);
    if (!one.present && one.open) close(one, now);
    const auto& then = one.advice->then;
    if (one.open && then && !one.escalated && now - one.since >= then->after) {
      one.escalated = true;
      report(condition_change::kind::changed, {one.from, 0, one.code}, then->grade, then->act, one.cause, now);
    }
    codes_open_ |= one.open;
  }
  std::erase_if(codes_, [](const code_state& s) { return !s.present && !s.open; });
}

void patient::advance(millis now) {
  if (!aging_.empty() && now >= next_aging_) age(now);
  if (!pending_.empty()) {
    const auto waiting = std::exchange(pending_, {});
    for (const auto r : waiting) rules_[r].pending = false;
    for (const auto r : waiting) settle(r, now);
  }
  if (codes_open_) settle_codes(now);
  if (open_symptoms_ > 0) free_symptoms(now);
}

void patient::close_all(millis now) {
  for (plan::index r = 0; r < rules_.size(); ++r)
    if (rules_[r].open) close(r, now);
  for (auto& one : codes_)
    if (one.open) close(one, now);
  auto said = std::move(changes_);
  *this = patient(*plan_, *base_);
  changes_ = std::move(said);
}

std::size_t patient::bytes() const {
  const auto of = [](const auto& v) { return v.capacity() * sizeof(v[0]); };
  return sizeof(*this) + of(slots_) + of(clauses_) + of(rules_) + of(codes_) + of(windows_) + of(marks_) +
         of(happenings_) + of(pending_) + of(aging_) + of(changes_);
}

}  // namespace infernex::diagnosis
