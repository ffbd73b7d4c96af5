#include <algorithm>

#include <boost/json/object.hpp>

#include "diagnosis/knowledge_base.hpp"
#include "diagnosis/knowledge_clause.hpp"

// The rules, and what operators change of them.
namespace infernex::diagnosis {

namespace {

void read_clauses(config::section& at, std::string_view key, std::vector<clause>& into) {
  for (auto& one : at.list(key)) into.push_back(read_clause(one));
}

void read_cleared_by(config::section& at, std::vector<fb::HwEventKind>& into) {
  std::vector<std::string> words;
  at.read("cleared_by", words);
  for (const auto& word : words) {
    if (const auto found = find_event_kind(word))
      into.push_back(*found);
    else
      at.complain("cleared_by", "there is no event \"" + word + '"');
  }
}

void check_scope(config::section& at, const rule& one) {
  for (const auto& c : one.any) {
    const bool of_node = c.what == clause::kind::event || c.what == clause::kind::silent ||
                         c.what == clause::kind::reading || c.what == clause::kind::rise;
    if (one.at == scope::node && !of_node) at.complain("scope", "codes, failures and anomalies are of a device");
    if (one.at == scope::device && c.count == clause::counting::distinct_devices)
      at.complain("any", "distinct_devices needs `scope: node`");
  }
  if (one.any.empty()) at.complain("any", "a list of one condition at least");
  if (one.any.size() + one.meanwhile.size() > 32) at.complain("any", "at most 32 conditions");
}

rule read_rule(config::section& at) {
  rule one;
  std::uint32_t number = 0;
  at.require("id").require("pattern").require("title").require("severity").require("action");
  at.read("id", one.id).read("number", number, 1, 1000).read("pattern", one.pattern).read("title", one.title);
  at.read_choice("vendor", one.vendor,
                 {{"any", fb::HwVendor::Unknown}, {"ascend", fb::HwVendor::Ascend}, {"nvidia", fb::HwVendor::Nvidia}});
  at.read_choice("scope", one.at, {{"device", scope::device}, {"node", scope::node}});
  at.read("confidence", one.confidence, 0, 1);
  at.read("suppresses", one.suppresses)
      .read("treatment", one.treatment)
      .read("rules_out", one.rules_out)
      .read("clears_when", one.clears_when)
      .read("source", one.source);
  one.number = number;
  read_outcome(at, one.grade, one.act);
  read_clauses(at, "any", one.any);
  read_clauses(at, "while", one.meanwhile);
  read_millis(at, "raise_after", one.raise_after);
  read_millis(at, "clear_after", one.clear_after);
  one.then = read_escalation(at);
  read_cleared_by(at, one.cleared_by);
  check_scope(at, one);
  return one;
}

/// Which of a rule's limits an override means: `condition` counts from 1, through `any`, then `while`.
void read_limit(config::section& at, rule& one) {
  if (!at.has("limit")) return;
  auto below = at.below("limit");
  std::uint32_t condition = 1;
  double limit = 0;
  const auto count = static_cast<std::uint32_t>(one.any.size() + one.meanwhile.size());
  below.read("condition", condition, 1, std::max(1U, count)).require("value").read("value", limit, 0, 1e18);
  if (condition > count) return;
  auto& wanted = condition <= one.any.size() ? one.any[condition - 1] : one.meanwhile[condition - 1 - one.any.size()];
  if (wanted.counted() && wanted.what != clause::kind::rise)
    wanted.seen = static_cast<std::uint32_t>(limit);
  else if (wanted.what == clause::kind::silent)
    wanted.silence = static_cast<millis>(1000 * limit);
  else
    wanted.limit = limit;
}

}  // namespace

void read_rules(config::section root, std::vector<rule>& into) {
  root.require("rules");
  for (auto& at : root.list("rules")) into.push_back(read_rule(at));
}

void read_overrides(config::section root, std::string_view file, std::vector<rule>& rules) {
  for (auto& at : root.list("overrides")) {
    std::string id;
    std::string because;
    at.require("rule").read("rule", id).read("because", because);
    const auto found = std::ranges::find(rules, id, &rule::id);
    rule unknown;
    auto& one = found == rules.end() ? unknown : *found;
    if (found == rules.end()) at.complain("rule", "there is no rule \"" + id + '"');
    at.read("enabled", one.enabled);
    read_outcome(at, one.grade, one.act);
    read_millis(at, "raise_after", one.raise_after);
    read_millis(at, "clear_after", one.clear_after);
    if (found != rules.end()) {
      read_limit(at, one);
    } else if (at.has("limit")) {
      boost::json::object skipped;
      at.read("limit", skipped);
    }
    one.overridden_by = because.empty() ? std::string(file) : because + " (" + std::string(file) + ')';
  }
}

}  // namespace infernex::diagnosis
