#include <algorithm>

#include "diagnosis/engine_parts.hpp"
#include "diagnosis/evidence.hpp"

// From what changed at a device to the verdict that is told.
namespace infernex::diagnosis {

namespace {

constexpr std::size_t most_changes = 65'536;

const std::string* id_of(const open_ids& ids, const condition_key& key) {
  const auto found = std::ranges::find(ids, key, &open_ids::value_type::first);
  return found == ids.end() ? nullptr : &found->second;
}

std::string_view table_name(table from) {
  constexpr std::array<std::string_view, 3> names{"ascend-code", "nvidia-xid", "nvidia-sxid"};
  return names[static_cast<std::size_t>(from)];
}

const code_table& table_of(const knowledge& base, table from) {
  return from == table::ascend ? base.ascend : from == table::xid ? base.xid : base.sxid;
}

void describe_rule(const rule& is, verdict& out) {
  out.rule = is.id;
  out.pattern = is.pattern;
  out.title = is.title;
  out.confidence = is.confidence;
  out.rules_out = is.rules_out;
  out.treatment = is.treatment;
  out.clears_when = is.clears_when;
  out.source = is.source;
  out.overridden_by = is.overridden_by;
}

void describe_code(const knowledge& base, table from, std::uint64_t code, verdict& out) {
  const auto& known = table_of(base, from);
  const auto* advice = known.advice_of(code);
  const bool listed = advice != nullptr;
  if (!listed) advice = known.find_level("unknown");
  const auto number = from == table::ascend ? render_ascend_code(code) : std::to_string(code);
  const auto text = known.text(code);
  const std::string_view word = from == table::ascend ? "Code " : from == table::xid ? "XID " : "SXID ";
  out.rule = std::string(table_name(from)) + ':' + number;
  out.pattern = table_name(from);
  out.title = std::string(word) + number + ": " +
              (!text.empty() ? std::string(text) + " (" + advice->level + ": " + advice->means + ')'
               : listed      ? "known code, level " + advice->level + " (" + advice->means + "), no public description"
                             : "not known to us");
  out.confidence = listed ? 0.9 : 0.5;
  out.treatment = advice->treatment;
  out.clears_when = from == table::ascend ? "the driver withdraws the code" : "a reset or restart, or when it is old";
  out.source = from == table::ascend ? "mind-cluster: handling levels" : "NVIDIA's catalogs, by way of gpud";
}

}  // namespace

void engine::publish(node& of, device* who, patient& from) {
  for (const auto& change : from.take_changes()) put(of, who, from, change);
}

verdict engine::describe(node& of, device* who, const patient& from, const condition_change& change) const {
  verdict out;
  out.who.node = of.name;
  if (who != nullptr)
    out.who = {of.name, who->index, who->vendor, who->id, who->bus_id, who->model, who->driver, who->firmware};
  out.knowledge = base_->edition;
  if (change.key.from)
    describe_code(*base_, *change.key.from, change.key.code, out);
  else
    describe_rule(*from.rules().rule_at(change.key.rule).is, out);
  add_grounds(from, who != nullptr ? &who->curves : nullptr, change.key, of.offset, change.at, out);
  return out;
}

void engine::put(node& of, device* who, patient& from, const condition_change& change) {
  using kind = condition_change::kind;
  auto& ids = who != nullptr ? who->ids : of.ids;
  const auto time = static_cast<std::uint64_t>(std::max<millis>(0, change.at + of.offset)) * 1'000'000;
  const auto* id = id_of(ids, change.key);
  const auto before = id != nullptr ? book_.find(*id) : nullptr;
  verdict next;
  if (change.what == kind::raised || !before) {
    if (change.what == kind::cleared) return;  // it was never kept
    next = describe(of, who, from, change);
    next.raised_at = time;
    next.id = of.name + '/' + (who != nullptr ? std::to_string(who->index) : "node") + '/' + next.rule + '/' +
              std::to_string(time / 1'000'000);
    ids.emplace_back(change.key, next.id);
  } else {
    next = *before;
  }
  next.state = change.what == kind::raised    ? fb::VerdictState::Raised
               : change.what == kind::changed ? fb::VerdictState::Changed
                                              : fb::VerdictState::Cleared;
  next.grade = change.grade;
  next.act = change.act;
  next.changed_at = time;
  next.suppressed_by.clear();
  if (change.cause) {
    const auto* root = id_of(ids, *change.cause);
    next.suppressed_by = root != nullptr ? *root : from.rules().rule_at(change.cause->rule).is->id;
  }
  if (change.what == kind::cleared) {
    next.cleared_at = time;
    std::erase_if(ids, [&](const auto& one) { return one.first == change.key; });
  }
  auto kept = std::make_shared<const verdict>(std::move(next));
  book_.put(kept);
  if (changes_.size() < most_changes)
    changes_.push_back(std::move(kept));
  else
    ++counts_.refused;
}

}  // namespace infernex::diagnosis
