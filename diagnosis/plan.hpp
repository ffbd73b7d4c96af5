#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "diagnosis/knowledge.hpp"

namespace infernex::diagnosis {

inline constexpr std::size_t most_rules = 256;

/// Kinds of verdicts that come from a table of codes rather than from a rule.
enum class table : std::uint8_t { ascend, xid, sxid };

/// The rules that apply to devices of one vendor, or to nodes, turned inside out: from what can arrive to the
/// conditions that look at it.
class plan {
 public:
  using index = std::uint16_t;

  struct planned_clause {
    const clause* is = nullptr;
    index rule = 0;
  };
  struct planned_rule {
    const rule* is = nullptr;
    index first = 0;  // of its clauses: `any`, then `while`
    index any = 0;
    index meanwhile = 0;
    std::bitset<most_rules> suppresses;
    std::array<bool, 3> suppresses_table{};
  };

  plan(std::shared_ptr<const knowledge> base, fb::HwVendor vendor, scope at);

  scope of() const { return of_; }

  std::span<const planned_rule> rules() const { return rules_; }
  std::span<const planned_clause> clauses() const { return clauses_; }
  const planned_clause& at(index clause) const { return clauses_[clause]; }
  const planned_rule& rule_at(index rule) const { return rules_[rule]; }

  std::span<const index> of_metric(metric id) const { return by_metric_[static_cast<std::size_t>(id)]; }
  std::span<const index> of_code(std::uint64_t code) const;
  std::span<const index> of_event(fb::HwEventKind kind) const;
  std::span<const index> of_kind(clause::kind kind) const { return by_kind_[static_cast<std::size_t>(kind)]; }
  /// Rules whose verdicts such an event clears.
  std::span<const index> cleared_by(fb::HwEventKind kind) const;
  /// Whether a rule of its own speaks of this number, so that its table need not.
  bool claims(table from, std::uint64_t code) const;

 private:
  void add(const rule& one);
  void add(const clause& one, index rule);
  void link_suppressions();

  static constexpr std::size_t kinds = static_cast<std::size_t>(fb::HwEventKind::MAX) + 1;
  std::shared_ptr<const knowledge> base_;
  scope of_;
  std::vector<planned_rule> rules_;
  std::vector<planned_clause> clauses_;
  std::array<std::vector<index>, monitor::metric_count> by_metric_;
  std::array<std::vector<index>, kinds> by_event_;
  std::array<std::vector<index>, kinds> clears_;
  std::array<std::vector<index>, 8> by_kind_;
  std::unordered_map<std::uint64_t, std::vector<index>> by_code_;
};

}  // namespace infernex::diagnosis
