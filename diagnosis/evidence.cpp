#include "diagnosis/evidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace infernex::diagnosis {

namespace {

constexpr float not_measured = std::numeric_limits<float>::quiet_NaN();

std::uint64_t nanoseconds(millis at) { return at > 0 ? static_cast<std::uint64_t>(at) * 1'000'000 : 0; }

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string comparison_text(const clause& c) {
  using k = clause::comparison;
  switch (c.compare) {
    case k::at_least:
      return "at least ";
    case k::at_most:
      return "at most ";
    case k::above:
      return "above ";
    case k::below:
      return "below ";
    case k::equals:
      return "equal to ";
    case k::differs:
      return "other than ";
    case k::bits:
      return "any bit of ";
  }
  return {};
}

std::string reference_text(const clause& c) {
  std::string base;
  switch (c.relative) {
    case clause::reference::none:
      return number_text(c.limit);
    case clause::reference::of_metric:
      base = monitor::info(c.to).name;
      break;
    case clause::reference::most_of_node:
      base = "the most of its peers";
      break;
    case clause::reference::idle_power_10:
      base = "idle power and a tenth of the range above it";
      break;
  }
  if (c.times != 1) base = number_text(c.times) + " x " + base;
  if (c.plus != 0) base += (c.plus > 0 ? " + " : " - ") + number_text(std::abs(c.plus));
  return base;
}

void add_curve(const trace* curves, const slot* last, metric id, millis offset, evidence& into) {
  std::vector<millis> times;
  if (curves != nullptr && curves->curve(id, times, into.values)) {
    for (const auto at : times) into.times.push_back(nanoseconds(at + offset));
  }
  if (last == nullptr) return;
  if (into.times.size() == evidence::most_samples) {
    into.times.erase(into.times.begin());
    into.values.erase(into.values.begin());
  }
  into.times.push_back(nanoseconds(last->read_at + offset));
  into.values.push_back(last->value);
}

void add_happenings(const patient& from, const evidence& like, const clause& c, millis offset, millis now,
                    evidence& into) {
  for (const auto& h : from.happenings()) {
    if (h.id != like.id || h.event != like.event || (c.within > 0 && now - h.at > c.within)) continue;
    if (!c.codes.empty() && std::ranges::find(c.codes, h.code) == c.codes.end()) continue;
    into.times.push_back(nanoseconds(h.at + offset));
    if (like.id != metric::Unknown) into.values.push_back(h.value);
    if (like.event != fb::HwEventKind::Unknown) into.code = h.code;
  }
}

/// The part whose reading speaks for the condition: the first, unless another is further off.
const slot* telling_slot(const patient& from, const clause& c) {
  const slot* best = nullptr;
  const bool low = c.compare == clause::comparison::below || c.compare == clause::comparison::at_most ||
                   c.compare == clause::comparison::equals;
  for (const auto& s : from.slots())
    if (s.id == c.of && (best == nullptr || (low ? s.value < best->value : s.value > best->value))) best = &s;
  return best;
}

evidence of_clause(const patient& from, const trace* curves, const clause& c, millis offset, millis now) {
  evidence one;
  one.window = c.within;
  switch (c.what) {
    case clause::kind::reading: {
      const auto& known = monitor::info(c.of);
      const auto* last = telling_slot(from, c);
      one.id = c.of;
      one.part = last != nullptr ? last->part : std::uint16_t{0};
      one.unit = known.unit;
      one.text = std::string(known.name) + ' ' + comparison_text(c) + reference_text(c);
      if (c.relative == clause::reference::none && c.compare != clause::comparison::bits) one.threshold = c.limit;
      if (c.relative == clause::reference::of_metric)
        if (const auto* to = from.find(c.to)) one.threshold = to->value * c.times + c.plus;
      add_curve(curves, last, c.of, offset, one);
      break;
    }
    case clause::kind::rise:
      one.id = c.of;
      one.unit = monitor::info(c.of).unit;
      one.text = std::string(monitor::info(c.of).name) + " rose";
      if (c.by_formula == clause::formula::none) one.threshold = c.limit;
      add_happenings(from, one, c, offset, now, one);
      break;
    case clause::kind::code:
      one.event = fb::HwEventKind::AscendCode;
      one.text = "fault code";
      for (const auto code : c.codes) one.text += ' ' + render_ascend_code(code);
      add_happenings(from, one, c, offset, now, one);
      break;
    case clause::kind::event:
      one.event = c.event;
      one.text = fb::EnumNameHwEventKind(c.event);
      add_happenings(from, one, c, offset, now, one);
      break;
    case clause::kind::failure:
      one.text = "reads fail:";
      for (const auto code : c.failures) one.text += ' ' + std::to_string(code);
      break;
    case clause::kind::silent:
      one.text = "nothing was heard for " + number_text(static_cast<double>(c.silence) / 1000) + " s";
      break;
    case clause::kind::absent:
      one.text = "the inventory says that it is not there";
      break;
    case clause::kind::anomaly:
      one.id = c.anomaly == clause::anomaly_name::power_unlike_peers ? metric::Power : metric::Temperature;
      one.unit = monitor::info(one.id).unit;
      one.text = "against its peers and its own past, at the power it draws";
      add_curve(curves, from.find(one.id), one.id, offset, one);
      break;
  }
  one.count = std::max<std::uint64_t>(one.times.size(), 1);
  return one;
}

void add_of_table(const patient& from, const condition_key& key, millis offset, verdict& into) {
  evidence one;
  constexpr std::array events{fb::HwEventKind::AscendCode, fb::HwEventKind::Xid, fb::HwEventKind::Sxid};
  one.event = events[static_cast<std::size_t>(*key.from)];
  one.code = key.code;
  one.text = into.title;
  for (const auto& h : from.happenings())
    if (h.event == one.event && h.code == key.code) one.times.push_back(nanoseconds(h.at + offset));
  one.count = one.times.size();
  into.grounds.push_back(std::move(one));
}

}  // namespace

void trace::add(const patient& from, millis now) {
  next_ = now + interval;
  times_[head_] = now;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const auto* s = from.find(metrics[i]);
    values_[i][head_] = s != nullptr && now - s->read_at < interval ? static_cast<float>(s->value) : not_measured;
  }
  head_ = static_cast<std::uint8_t>((head_ + 1) % length);
  count_ = static_cast<std::uint8_t>(std::min<std::size_t>(length, count_ + 1U));
}

bool trace::curve(metric id, std::vector<millis>& times, std::vector<double>& values) const {
  const auto* at = std::ranges::find(metrics, id);
  if (at == metrics.end()) return false;
  const auto& of = values_[static_cast<std::size_t>(at - metrics.begin())];
  for (std::size_t k = 0; k < count_; ++k) {
    const auto i = (head_ + length - count_ + k) % length;
    if (std::isnan(of[i])) continue;
    times.push_back(times_[i]);
    values.push_back(static_cast<double>(of[i]));
  }
  return !times.empty();
}

void add_grounds(const patient& from, const trace* curves, const condition_key& key, millis offset, millis now,
                 verdict& into) {
  if (key.from) return add_of_table(from, key, offset, into);
  const auto& rule = from.rules().rule_at(key.rule);
  std::vector<metric> missing;
  for (auto i = rule.first; i < rule.first + rule.any + rule.meanwhile; ++i) {
    const auto& c = *from.rules().at(static_cast<plan::index>(i)).is;
    const bool measures = c.what == clause::kind::reading || c.what == clause::kind::rise;
    if (measures && telling_slot(from, c) == nullptr) {
      if (std::ranges::find(missing, c.of) == missing.end()) missing.push_back(c.of);
      continue;
    }
    if (i < rule.first + rule.any && !from.holds(static_cast<plan::index>(i))) continue;
    into.grounds.push_back(of_clause(from, curves, c, offset, now));
  }
  for (const auto id : missing) into.missing.emplace_back(monitor::info(id).name);
}

}  // namespace infernex::diagnosis
