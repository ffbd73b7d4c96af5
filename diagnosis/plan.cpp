#include "diagnosis/plan.hpp"

#include <algorithm>

namespace infernex::diagnosis {

plan::plan(std::shared_ptr<const knowledge> base, fb::HwVendor vendor, scope at) : base_(std::move(base)), of_(at) {
  for (const auto& one : base_->rules) {
    if (!one.enabled || one.at != at || rules_.size() == most_rules) continue;
    if (at == scope::device && one.vendor != fb::HwVendor::Unknown && one.vendor != vendor) continue;
    add(one);
  }
  link_suppressions();
}

void plan::add(const rule& one) {
  const auto here = static_cast<index>(rules_.size());
  rules_.push_back({&one,
                    static_cast<index>(clauses_.size()),
                    static_cast<index>(one.any.size()),
                    static_cast<index>(one.meanwhile.size()),
                    {},
                    {}});
  for (const auto& c : one.any) add(c, here);
  for (const auto& c : one.meanwhile) add(c, here);
  for (const auto kind : one.cleared_by) clears_[static_cast<std::size_t>(kind)].push_back(here);
}

void plan::add(const clause& one, index rule) {
  const auto here = static_cast<index>(clauses_.size());
  clauses_.push_back({&one, rule});
  by_kind_[static_cast<std::size_t>(one.what)].push_back(here);
  const auto look = [&](metric id) {
    auto& list = by_metric_[static_cast<std::size_t>(id)];
    if (list.empty() || list.back() != here) list.push_back(here);
  };
  switch (one.what) {
    case clause::kind::reading:
      look(one.of);
      if (one.relative == clause::reference::of_metric) look(one.to);
      break;
    case clause::kind::rise:
      look(one.of);
      if (one.by_formula == clause::formula::pcie_replays) {
        // Not conditions on them, but they have to be kept.
        look(metric::PcieGeneration);
        look(metric::PcieWidth);
      }
      break;
    case clause::kind::code:
      for (const auto code : one.codes) by_code_[code].push_back(here);
      break;
    case clause::kind::event:
      by_event_[static_cast<std::size_t>(one.event)].push_back(here);
      break;
    default:
      break;
  }
}

void plan::link_suppressions() {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    auto& one = rules_[i];
    for (const auto& name : one.is->suppresses) {
      const bool all = name == "*";
      one.suppresses_table[0] |= all || name == "ascend-code";
      one.suppresses_table[1] |= all || name == "nvidia-xid";
      one.suppresses_table[2] |= all || name == "nvidia-sxid";
      for (std::size_t j = 0; j < rules_.size(); ++j)
        if (i != j && (all || rules_[j].is->id == name)) one.suppresses.set(j);
    }
  }
}

std::span<const plan::index> plan::of_code(std::uint64_t code) const {
  const auto found = by_code_.find(code);
  return found == by_code_.end() ? std::span<const index>{} : std::span<const index>{found->second};
}

std::span<const plan::index> plan::of_event(fb::HwEventKind kind) const {
  const auto at = static_cast<std::size_t>(kind);
  return at < kinds ? std::span<const index>{by_event_[at]} : std::span<const index>{};
}

std::span<const plan::index> plan::cleared_by(fb::HwEventKind kind) const {
  const auto at = static_cast<std::size_t>(kind);
  return at < kinds ? std::span<const index>{clears_[at]} : std::span<const index>{};
}

bool plan::claims(table from, std::uint64_t code) const {
  const auto speaks = [this](index i) {
    const auto& c = *clauses_[i].is;
    return c.seen == 1 && rules_[clauses_[i].rule].is->meanwhile.empty();
  };
  if (from == table::ascend) return std::ranges::any_of(of_code(code), speaks);
  const auto kind = from == table::xid ? fb::HwEventKind::Xid : fb::HwEventKind::Sxid;
  return std::ranges::any_of(of_event(kind), [&](index i) {
    return speaks(i) && std::ranges::find(clauses_[i].is->codes, code) != clauses_[i].is->codes.end();
  });
}

}  // namespace infernex::diagnosis
