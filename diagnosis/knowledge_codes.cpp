#include <algorithm>
#include <charconv>

#include "diagnosis/knowledge_base.hpp"

// The tables of codes, and what their levels ask for.
namespace infernex::diagnosis {

namespace {

using namespace std::chrono_literals;

std::optional<std::uint64_t> code_number(std::string_view text, bool hexadecimal) {
  if (hexadecimal && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (problem != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

void read_advice(config::section& root, std::string_view key, code_table& into) {
  for (auto& at : root.list(key)) {
    level_advice one;
    at.require("level").read("level", one.level).read("means", one.means).read("treatment", one.treatment);
    read_outcome(at, one.grade, one.act);
    std::chrono::milliseconds clear{0};
    at.read("clear_after", clear, 1s, 720h);
    one.clear_after = clear.count();
    one.then = read_escalation(at);
    if (into.find_level(one.level) != nullptr) at.complain("level", "is given twice");
    into.levels.push_back(std::move(one));
  }
  if (into.find_level("unknown") == nullptr) root.complain(key, "a level `unknown` is needed, for what is not listed");
}

}  // namespace

void read_outcome(config::section& at, severity& grade, action& act) {
  at.read_choice("severity", grade,
                 {{"unknown", severity::Unknown},
                  {"info", severity::Info},
                  {"warning", severity::Warning},
                  {"major", severity::Major},
                  {"critical", severity::Critical}});
  at.read_choice(
      "action", act,
      {{"ok", action::Ok}, {"watch", action::Watch}, {"degrade", action::Degrade}, {"isolate", action::Isolate}});
}

std::optional<escalation> read_escalation(config::section& at) {
  if (!at.has("then")) return std::nullopt;
  auto below = at.below("then");
  escalation then;
  std::chrono::milliseconds after{0};
  below.require("after").read("after", after, 1s, 720h);
  then.after = after.count();
  read_outcome(below, then.grade, then.act);
  return then;
}

void read_levels(config::section root, knowledge& into) {
  root.require("edition").read("edition", into.edition);
  read_advice(root, "levels", into.ascend);
  read_advice(root, "xid_buckets", into.xid);
  read_advice(root, "sxid_buckets", into.sxid);
}

void read_codes(config::section root, code_table& into, bool hexadecimal) {
  {
    auto codes = root.below("codes");
    for (std::uint16_t i = 0; i < into.levels.size(); ++i) {
      std::vector<std::string> numbers;
      codes.read(into.levels[i].level, numbers);
      for (const auto& text : numbers) {
        const auto number = code_number(text, hexadecimal);
        if (!number)
          codes.complain(into.levels[i].level, "not a code: \"" + text + "\"");
        else if (!into.level_of.emplace(*number, i).second)
          codes.complain(into.levels[i].level, "the code " + text + " is listed twice");
      }
    }
  }
  for (auto& at : root.list("texts")) {
    std::string code;
    std::string text;
    at.require("code").require("text").read("code", code).read("text", text);
    const auto number = code_number(code, hexadecimal);
    if (!number)
      at.complain("code", "not a code: \"" + code + "\"");
    else if (!into.level_of.contains(*number))
      at.complain("code", "has a text, but no level");
    else
      into.text_of.emplace(*number, std::move(text));
  }
}

}  // namespace infernex::diagnosis
