#include "diagnosis/book.hpp"

#include <algorithm>

namespace infernex::diagnosis {

void verdict_book::put(verdict_ref what) {
  auto& here = by_place_[place_of(what->who.node, what->who.device)];
  std::erase_if(here, [&](const verdict_ref& one) { return one->id == what->id; });
  raised_ += what->state == fb::VerdictState::Raised;
  if (what->stands()) {
    if (!standing_.contains(what->id) && standing_.size() >= most_standing_) {
      ++not_kept_;
      return;
    }
    here.push_back(what);
    standing_.insert_or_assign(what->id, std::move(what));
    return;
  }
  ++cleared_;
  standing_.erase(what->id);
  if (here.empty()) by_place_.erase(place_of(what->who.node, what->who.device));
  past_.push_front(std::move(what));
  if (past_.size() > most_past_) past_.pop_back();
}

verdict_ref verdict_book::find(const std::string& id) const {
  const auto found = standing_.find(id);
  return found == standing_.end() ? nullptr : found->second;
}

standing verdict_book::at(const std::string& node, std::optional<std::uint32_t> device) const {
  standing out;
  const auto here = by_place_.find(place_of(node, device));
  if (here == by_place_.end()) return out;
  for (const auto& one : here->second) {
    fb::OpenVerdictT brief;
    brief.id = one->id;
    brief.pattern = one->pattern;
    brief.severity = one->grade;
    brief.action = one->suppressed_by.empty() ? one->act : action::Ok;
    brief.since = one->raised_at;
    out.open.push_back(std::move(brief));
    if (!one->suppressed_by.empty()) continue;
    out.grade = std::max(out.grade, one->grade);
    out.act = std::max(out.act, one->act);
  }
  return out;
}

std::vector<verdict_ref> verdict_book::all_standing() const {
  std::vector<verdict_ref> all;
  for (const auto& [where, here] : by_place_) all.insert(all.end(), here.begin(), here.end());
  return all;
}

std::vector<verdict_ref> verdict_book::past() const { return {past_.begin(), past_.end()}; }

fb::VerdictT to_message(const verdict& what, const standing& of_device) {
  fb::VerdictT m;
  m.node = what.who.node;
  m.device = what.who.device;
  m.vendor = what.who.vendor;
  m.device_id = what.who.device_id;
  m.bus_id = what.who.bus_id;
  m.model = what.who.model;
  m.driver = what.who.driver;
  m.firmware = what.who.firmware;
  m.id = what.id;
  m.state = what.state;
  m.severity = what.grade;
  m.action = what.suppressed_by.empty() ? what.act : action::Ok;
  m.pattern = what.pattern;
  m.title = what.title;
  m.rule = what.rule;
  m.knowledge = what.knowledge;
  m.confidence = what.confidence;
  m.raised_at = what.raised_at;
  m.changed_at = what.changed_at;
  m.cleared_at = what.cleared_at;
  for (const auto& from : what.grounds) {
    auto& to = *m.evidence.emplace_back(std::make_unique<fb::VerdictEvidenceT>());
    to.metric = from.id;
    to.part = from.part;
    to.event = from.event;
    to.code = from.code;
    to.text = from.text;
    to.unit = from.unit;
    to.times = from.times;
    to.values = from.values;
    to.window_ms = static_cast<std::uint64_t>(from.window);
    to.threshold = from.threshold;
    to.peer_median = from.peer_median;
    to.count = from.count;
  }
  m.missing = what.missing;
  m.rules_out = what.rules_out;
  m.treatment = what.treatment;
  m.clears_when = what.clears_when;
  m.suppressed_by = what.suppressed_by;
  m.source = what.source;
  m.overridden_by = what.overridden_by;
  for (const auto& one : of_device.open) m.open.push_back(std::make_unique<fb::OpenVerdictT>(one));
  m.device_severity = of_device.grade;
  m.device_action = of_device.act;
  return m;
}

}  // namespace infernex::diagnosis
