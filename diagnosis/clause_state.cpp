#include <algorithm>
#include <array>
#include <cmath>

#include "diagnosis/patient.hpp"

// From readings to conditions that hold, and the counting of what happens.
namespace infernex::diagnosis {

namespace {

using comparison = clause::comparison;

bool comes_before(const slot& a, metric id, std::uint16_t part) { return a.id < id || (a.id == id && a.part < part); }

/// DCGM's limit of PCIe replays a minute: by generation and lane.
double most_pcie_replays(double generation, double lanes) {
  constexpr std::array<double, 6> rates{0.15, 0.30, 0.48, 0.96, 1.92, 3.84};
  return std::ceil(rates[static_cast<std::size_t>(std::clamp(generation, 1.0, 6.0)) - 1] * lanes);
}

bool compare(comparison how, double value, double limit, double slack) {
  switch (how) {
    case comparison::at_least:
      return value >= limit - slack;
    case comparison::at_most:
      return value <= limit + slack;
    case comparison::above:
      return value > limit - slack;
    case comparison::below:
      return value < limit + slack;
    case comparison::equals:
      return value == limit;
    case comparison::differs:
      return value != limit;
    case comparison::bits:
      return (static_cast<std::uint64_t>(value) & static_cast<std::uint64_t>(limit)) != 0;
  }
  return false;
}

}  // namespace

const slot* patient::find(metric id, std::uint16_t part) const {
  const auto at = std::ranges::partition_point(slots_, [&](const slot& s) { return comes_before(s, id, part); });
  return at != slots_.end() && at->id == id && at->part == part ? &*at : nullptr;
}

void patient::on_readings(std::span<const monitor::reading> values, const model_range& peers, millis now) {
  const bool most_changed = peers.most_memory != peers_.most_memory;
  peers_ = peers;
  std::size_t at = 0;
  for (const auto& r : values) {
    const auto id = r.metric();
    if (static_cast<std::size_t>(id) >= monitor::metric_count) continue;
    const auto uses = plan_->of_metric(id);
    if (uses.empty() || r.age_ms() > stale_after) continue;
    while (at < slots_.size() && comes_before(slots_[at], id, r.part())) ++at;
    const bool first = at == slots_.size() || slots_[at].id != id || slots_[at].part != r.part();
    if (first) {
      if (slots_.size() == most_slots) continue;
      slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(at), slot{r.value(), now, id, r.part()});
    }
    auto& s = slots_[at];
    const auto read_at = now - static_cast<millis>(r.age_ms());
    const auto elapsed = first ? 0 : read_at - s.read_at;
    const double old = s.value;
    s.read_at = read_at;
    if (!first && old == r.value()) continue;
    s.value = r.value();
    for (const auto i : uses) touch(i, s, old, elapsed, first, now);
  }
  rebase_ = false;
  if (!most_changed) return;
  for (const auto i : plan_->of_metric(metric::MemoryTotal))
    if (plan_->at(i).is->what == clause::kind::reading)
      set_base(i, judge(*plan_->at(i).is, clauses_[i].base), now, now);
}

void patient::touch(plan::index i, const slot& changed, double old, millis elapsed, bool first, millis now) {
  const auto& c = *plan_->at(i).is;
  if (c.what == clause::kind::reading) return set_base(i, judge(c, clauses_[i].base), changed.read_at, now);
  if (changed.id != c.of) return;  // something its limit depends on
  auto& state = clauses_[i];
  if (state.now == truth::unknown) state.now = truth::no;
  // The first reading, or one below the last (the driver was loaded anew), is a baseline.
  if (first || rebase_ || changed.value <= old) return;
  double rise = changed.value - old;
  if (elapsed > c.within) rise = std::ceil(rise * static_cast<double>(c.within) / static_cast<double>(elapsed));
  remember({now, 0, changed.value, changed.id, changed.part, fb::HwEventKind::Unknown});
  occur(i, static_cast<std::uint32_t>(std::min(rise, 4e9)), now);
}

std::optional<double> patient::limit_of(const clause& c) const {
  std::optional<double> base;
  switch (c.relative) {
    case clause::reference::none:
      return c.limit;
    case clause::reference::of_metric:
      if (const auto* to = find(c.to)) base = to->value;
      break;
    case clause::reference::most_of_node:
      if (peers_.most_memory > 0) base = peers_.most_memory;
      break;
    case clause::reference::idle_power_10:
      // Until a load has been seen nobody knows what a load would draw.
      if (peers_.most_power > 1.5 * peers_.least_power && peers_.least_power > 0)
        base = peers_.least_power + 0.1 * (peers_.most_power - peers_.least_power);
      break;
  }
  if (base) return *base * c.times + c.plus;
  return c.limit != 0 ? std::optional(c.limit + c.plus) : std::nullopt;
}

patient::truth patient::judge(const clause& c, truth before) const {
  const auto limit = limit_of(c);
  if (!limit) return truth::unknown;
  auto at = std::ranges::partition_point(slots_, [&](const slot& s) { return comes_before(s, c.of, 0); });
  auto result = truth::unknown;
  for (; at != slots_.end() && at->id == c.of; ++at) {
    if (compare(c.compare, at->value, *limit, before == truth::yes ? c.slack : 0)) return truth::yes;
    result = truth::no;
  }
  return result;
}

void patient::set_base(plan::index i, truth base, millis at, millis now) {
  auto& state = clauses_[i];
  if (state.base == base) return;
  const auto& c = *plan_->at(i).is;
  const bool ended = state.base == truth::yes;
  state.base = base;
  if (!c.counted()) {
    state.now = base;
    state.since = at;
    return weigh(plan_->at(i).rule, at, now);
  }
  if (state.now == truth::unknown) state.now = truth::no;
  if (base == truth::yes) {
    state.since = at;
    if (c.lasting == 0) occur(i, 1, now);
  } else if (ended && c.lasting > 0 && at - state.since >= c.lasting) {
    occur(i, 1, now);
  }
}

void patient::occur(plan::index i, std::uint32_t n, millis now, std::uint64_t code, std::uint32_t key) {
  auto& state = clauses_[i];
  const auto& c = *plan_->at(i).is;
  const auto gap = c.sticky_burst > 0 && std::ranges::find(c.sticky, code) != c.sticky.end() ? c.sticky_burst : c.burst;
  const bool same_burst = gap > 0 && state.last > 0 && now - state.last < gap;
  state.last = now;
  if (c.count != clause::counting::each) {
    if (same_burst && c.count == clause::counting::same_unit) return;
    if (marks_.size() == most_happenings) marks_.erase(marks_.begin());
    marks_.push_back({now, key, i});
  } else if (!same_burst) {
    if (state.window == none) {
      if (windows_.size() >= none) return;
      state.window = static_cast<std::uint8_t>(windows_.size());
      windows_.emplace_back();
    }
    windows_[state.window].add(now, c.within, n);
  }
  if (!state.aging) {
    state.aging = true;
    aging_.push_back(i);
  }
  recount(i, now);
}

std::uint64_t patient::marks_of(const clause& c, plan::index i, millis now) {
  std::erase_if(marks_, [&](const mark& m) { return m.clause == i && now - m.at > c.within; });
  std::vector<std::uint32_t> keys;
  for (const auto& m : marks_)
    if (m.clause == i) keys.push_back(m.key);
  std::ranges::sort(keys);
  if (c.count != clause::counting::same_unit)
    return static_cast<std::uint64_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
  std::uint64_t most = 0;
  for (const auto key : keys)
    most = std::max<std::uint64_t>(most, static_cast<std::uint64_t>(std::ranges::count(keys, key)));
  return most;
}

std::uint64_t patient::counted(plan::index i, millis now) {
  const auto& c = *plan_->at(i).is;
  if (c.count != clause::counting::each) return marks_of(c, i, now);
  const auto& state = clauses_[i];
  return state.window == none ? 0 : windows_[state.window].sum(now, c.within);
}

bool patient::enough(const clause& c, plan::index i, millis now) {
  const auto count = counted(i, now);
  if (c.what != clause::kind::rise) return count >= c.seen;
  double limit = c.limit;
  if (c.by_formula == clause::formula::pcie_replays) {
    const auto* generation = find(metric::PcieGeneration);
    const auto* width = find(metric::PcieWidth);
    if (generation == nullptr || width == nullptr) return false;
    limit = most_pcie_replays(generation->value, width->value);
  }
  return compare(c.compare, static_cast<double>(count), limit, 0) && count > 0;
}

void patient::recount(plan::index i, millis now) {
  auto& state = clauses_[i];
  const auto next = enough(*plan_->at(i).is, i, now) ? truth::yes : truth::no;
  if (state.now == next) return;
  state.now = next;
  if (plan_->at(i).is->what == clause::kind::event) state.base = truth::unknown;
  weigh(plan_->at(i).rule, now, now);
}

void patient::age(millis now) {
  next_aging_ = now + 1000;
  for (std::size_t k = 0; k < aging_.size(); ++k) {
    const auto i = aging_[k];
    const auto& c = *plan_->at(i).is;
    auto& state = clauses_[i];
    if (c.every > 0 && state.base == truth::yes && now - state.last >= c.every) occur(i, 1, now);
    recount(i, now);
    if (counted(i, now) > 0 || state.base == truth::yes) continue;
    state.aging = false;
    aging_[k--] = aging_.back();
    aging_.pop_back();
  }
}

}  // namespace infernex::diagnosis
