#include <algorithm>

#include "tests/unit/diagnosis/support.hpp"

namespace infernex::diagnosis {

namespace {

std::vector<knowledge_file> shipped() {
  std::vector<knowledge_file> files;
  for (const auto& [name, text] : embedded_knowledge()) files.push_back({std::string(name), std::string(text)});
  return files;
}

std::string all_problems(const loaded_knowledge& from) {
  std::string text;
  for (const auto& one : from.problems) text += config::render(one) + '\n';
  return text;
}

loaded_knowledge with_rules(const std::string& yaml) {
  auto files = shipped();
  std::erase_if(files, [](const auto& f) { return f.name.starts_with("rules_"); });
  files.push_back({"mine.yaml", yaml});
  return load_knowledge(files);
}

}  // namespace

TEST_CASE("what is compiled in loads without a mistake and knows its codes") {
  const auto loaded = load_knowledge("", "");
  CHECK(all_problems(loaded) == "");
  REQUIRE(loaded.base);
  const auto& base = *loaded.base;
  CHECK(base.rules.size() >= 50);
  CHECK(base.ascend.level_of.size() == 802);
  CHECK(base.xid.level_of.size() == 172);
  CHECK(base.sxid.level_of.size() == 93);
  CHECK(base.ascend.advice_of(0x80E18402)->level == "SeparateNPU");
  // Under two levels in the vendor's list: the graver.
  CHECK(base.ascend.advice_of(0xA2301001)->level == "SeparateNPU");
  // More than 32 bits.
  CHECK(base.ascend.advice_of(0x200001002)->level == "NotHandleFault");
  CHECK(base.xid.advice_of(119)->level == "reset_gpu");
  CHECK(base.xid.advice_of(63)->level == "ignore");
}

TEST_CASE("every row of the rule table has a rule, and every rule says what to do and what clears it") {
  const auto base = test::embedded();
  std::vector<std::uint32_t> numbers;
  for (const auto& one : base->rules) {
    numbers.push_back(one.number);
    CAPTURE(one.id);
    CHECK(!one.treatment.empty());
    CHECK(!one.clears_when.empty());
    CHECK(!one.source.empty());
  }
  for (std::uint32_t n = 1; n <= 45; ++n) {
    if (n == 41) continue;  // the kernel's heartbeat line: a condition of rule 1
    CAPTURE(n);
    CHECK(std::ranges::count(numbers, n) >= 1);
  }
}

TEST_CASE("mistakes are told all at once, with line and column") {
  const auto loaded = with_rules(R"(rules:
  - id: a
    pattern: p
    title: t
    severity: grave
    action: isolate
    any: [{metric: temprature, at_least: 90}]
  - id: b
    pattern: p
    title: t
    severity: major
    action: isolate
    colour: red
    any:
      - {event: card_dorp}
      - {metric: power, at_least: 1, below: 2}
)");
  CHECK(loaded.base == nullptr);
  const auto text = all_problems(loaded);
  CHECK(text.find("mine.yaml:5:15: rules[0].severity: one of unknown, info") != text.npos);
  CHECK(text.find("there is no metric \"temprature\"; did you mean 'temperature'?") != text.npos);
  CHECK(text.find("mine.yaml:13:5: rules[1].colour: unknown key") != text.npos);
  CHECK(text.find("there is no event \"card_dorp\"") != text.npos);
  CHECK(text.find("one of at_least, at_most, above") != text.npos);
}

TEST_CASE("rules that fit nothing are refused") {
  const auto twice = with_rules(R"(rules:
  - {id: a, pattern: p, title: t, severity: major, action: watch, any: [{metric: power, above: 1}]}
  - {id: a, pattern: p, title: t, severity: major, action: watch, suppresses: [nobody], any: [{metric: power, above: 1}]}
)");
  CHECK(all_problems(twice).find("'a' is given twice") != std::string::npos);
  CHECK(all_problems(twice).find("suppresses 'nobody', which does not exist") != std::string::npos);
  const auto none = with_rules("rules:\n  - {id: a, pattern: p, title: t, severity: major, action: watch}\n");
  CHECK(all_problems(none).find("one condition at least") != std::string::npos);
  CHECK(load_knowledge(std::vector<knowledge_file>{}).base == nullptr);
}

TEST_CASE("operators override rules, and the verdict will say so") {
  const auto files = shipped();
  const auto loaded = load_knowledge(files, {"site.yaml", R"(overrides:
  - {rule: hang, enabled: false}
  - {rule: ascend-port-down, severity: warning, action: watch, raise_after: 40s, because: "ports are for backup only"}
  - {rule: ascend-hbm-many, limit: {condition: 1, value: 100}}
)"});
  CHECK(all_problems(loaded) == "");
  REQUIRE(loaded.base);
  CHECK(!loaded.base->find("hang")->enabled);
  const auto& port = *loaded.base->find("ascend-port-down");
  CHECK(port.grade == severity::Warning);
  CHECK(port.act == action::Watch);
  CHECK(port.raise_after == 40'000);
  CHECK(port.overridden_by == "ports are for backup only (site.yaml)");
  CHECK(loaded.base->find("ascend-hbm-many")->any[0].limit == 100);

  const auto wrong = load_knowledge(files, {"site.yaml", "overrides:\n  - {rule: hangs, severity: warning}\n"});
  CHECK(all_problems(wrong) == "site.yaml:2:12: overrides[0].rule: there is no rule \"hangs\"\n");
}

}  // namespace infernex::diagnosis
