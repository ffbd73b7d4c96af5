#include "actors/simulator/fault_book.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <xxhash.h>

#include "actors/simulator/json_fields.hpp"

namespace infernex::simulator {

namespace json = boost::json;

namespace {

constexpr std::array<std::string_view, 12> names{
    "reset",      "error500", "error503",        "hang",   "die",     "cut",
    "recomputed", "transfer", "drop_metaserver", "refuse", "restart", "slow"};

constexpr std::array<std::string_view, 9> keys{"fault",        "count",  "probability", "seed", "when",
                                               "after_tokens", "factor", "down_ms",     "exit"};

}  // namespace

std::string_view name(fault_kind kind) { return names[static_cast<std::size_t>(kind)]; }

parsed<fault_rule> parse_fault(std::string_view body) {
  auto read = parse_body(body);
  if (auto* problem = std::get_if<refusal>(&read)) return std::move(*problem);
  const auto& object = std::get<json::object>(read);
  json_fields fields(object);
  for (const auto& [key, value] : object) {
    if (std::find(keys.begin(), keys.end(), std::string_view(key.data(), key.size())) == keys.end())
      fields.refuse(key, std::string(key) + ": no such field.");
  }
  fault_rule rule;
  const auto kind = fields.text("fault").value_or("");
  const auto found = std::find(names.begin(), names.end(), kind);
  if (found == names.end()) {
    fields.refuse("fault", "fault: no such fault: \"" + kind + "\".");
  } else {
    rule.kind = static_cast<fault_kind>(found - names.begin());
  }
  if (const auto count = fields.integer("count", 1)) rule.count = static_cast<std::uint32_t>(*count);
  rule.probability = fields.number("probability", 0, 1).value_or(1);
  rule.seed = fields.integer("seed", 0, std::numeric_limits<std::uint64_t>::max()).value_or(0);
  const auto when = fields.text("when").value_or("token");
  if (when != "token" && when != "prefill") fields.refuse("when", "when: \"prefill\" or \"token\".");
  rule.when = when == "prefill" ? fault_moment::prefill : fault_moment::token;
  rule.after_tokens = static_cast<std::uint32_t>(fields.integer("after_tokens").value_or(0));
  rule.factor = fields.number("factor", 0.001, 1e6).value_or(1);
  rule.down_ms = static_cast<std::uint32_t>(fields.integer("down_ms", 0, 600'000).value_or(500));
  rule.exit = fields.boolean("exit").value_or(false);
  if (fields.problem()) return *fields.problem();
  return rule;
}

bool fault_book::arm(fault_rule rule) {
  if (rules_.size() >= most_rules)
    std::erase_if(rules_, [](const armed& one) { return one.rule.count && one.struck >= *one.rule.count; });
  if (rules_.size() >= most_rules) return false;
  rules_.push_back({rule, 0, 0});
  return true;
}

bool fault_book::strikes(armed& one) {
  if (one.rule.count && one.struck >= *one.rule.count) return false;
  const auto seen = one.seen++;
  constexpr double unit = 1.0 / 9007199254740992.0;  // 2^-53
  if (static_cast<double>(XXH3_64bits_withSeed(&seen, sizeof seen, one.rule.seed) >> 11) * unit >= one.rule.probability)
    return false;
  ++one.struck;
  return true;
}

template <class Wanted>
std::optional<fault_rule> fault_book::first(Wanted wanted) {
  for (auto& one : rules_) {
    if (wanted(one.rule) && strikes(one)) return one.rule;
  }
  return std::nullopt;
}

std::optional<fault_rule> fault_book::strike_request() {
  return first([](const fault_rule& rule) { return rule.of_request(); });
}

std::optional<fault_rule> fault_book::strike(fault_kind kind) {
  return first([kind](const fault_rule& rule) { return rule.kind == kind; });
}

std::string fault_book::render() const {
  json::array faults;
  for (const auto& one : rules_) {
    json::object told{{"fault", json::string(name(one.rule.kind))}, {"struck", one.struck}};
    if (one.rule.count) {
      told["left"] = *one.rule.count - one.struck;
    } else {
      told["left"] = nullptr;
    }
    faults.push_back(std::move(told));
  }
  return json::serialize(json::object{{"faults", std::move(faults)}});
}

}  // namespace infernex::simulator
