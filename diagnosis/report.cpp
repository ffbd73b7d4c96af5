#include "diagnosis/report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "diagnosis/engine.hpp"

namespace infernex::diagnosis {

namespace {

namespace json = boost::json;

constexpr std::size_t most_past_told = 200;

json::array texts_of(const std::vector<std::string>& from) {
  json::array out;
  for (const auto& one : from) out.emplace_back(one);
  return out;
}

json::object evidence_json(const evidence& from) {
  json::object out;
  if (from.id != metric::Unknown) {
    out["metric"] = monitor::info(from.id).name;
    out["part"] = from.part;
    out["unit"] = from.unit;
  }
  if (from.event != fb::HwEventKind::Unknown) out["event"] = fb::EnumNameHwEventKind(from.event);
  if (from.code)
    out["code"] =
        from.event == fb::HwEventKind::AscendCode ? render_ascend_code(*from.code) : std::to_string(*from.code);
  out["text"] = from.text;
  json::array times;
  for (const auto at : from.times) times.emplace_back(at);
  out["times"] = std::move(times);
  json::array values;
  for (const auto value : from.values) values.emplace_back(value);
  out["values"] = std::move(values);
  if (from.window > 0) out["window_ms"] = from.window;
  if (from.threshold) out["threshold"] = *from.threshold;
  if (from.peer_median) out["peer_median"] = *from.peer_median;
  out["count"] = from.count;
  return out;
}

json::object verdict_json(const verdict& from) {
  json::object out;
  out["id"] = from.id;
  out["node"] = from.who.node;
  out["device"] = from.who.device ? json::value(*from.who.device) : json::value(nullptr);
  out["device_id"] = from.who.device_id;
  out["bus_id"] = from.who.bus_id;
  out["model"] = from.who.model;
  out["driver"] = from.who.driver;
  out["firmware"] = from.who.firmware;
  out["state"] = from.stands() ? "standing" : "cleared";
  out["severity"] = name(from.grade);
  out["action"] = name(from.suppressed_by.empty() ? from.act : action::Ok);
  out["pattern"] = from.pattern;
  out["title"] = from.title;
  out["rule"] = from.rule;
  out["confidence"] = from.confidence ? json::value(*from.confidence) : json::value(nullptr);
  out["raised_at"] = render_time(from.raised_at);
  out["changed_at"] = render_time(from.changed_at);
  if (from.cleared_at != 0) out["cleared_at"] = render_time(from.cleared_at);
  json::array grounds;
  for (const auto& one : from.grounds) grounds.push_back(evidence_json(one));
  out["evidence"] = std::move(grounds);
  out["missing"] = texts_of(from.missing);
  out["rules_out"] = texts_of(from.rules_out);
  out["treatment"] = texts_of(from.treatment);
  out["clears_when"] = from.clears_when;
  out["suppressed_by"] = from.suppressed_by;
  out["source"] = from.source;
  out["overridden_by"] = from.overridden_by;
  return out;
}

}  // namespace

fleet_report make_report(const engine& from, std::uint64_t at, const std::string& node) {
  fleet_report out;
  out.at = at;
  out.knowledge = from.known().edition;
  out.nodes = from.nodes();
  out.devices = from.devices();
  const auto wanted = [&node](const verdict_ref& one) { return node.empty() || one->who.node == node; };
  for (auto& one : from.book().all_standing())
    if (wanted(one)) out.standing.push_back(std::move(one));
  for (auto& one : from.book().past())
    if (wanted(one) && out.past.size() < most_past_told) out.past.push_back(std::move(one));
  // The gravest first, symptoms last.
  std::ranges::stable_sort(out.standing, [](const verdict_ref& a, const verdict_ref& b) {
    return std::tuple(!a->suppressed_by.empty(), b->grade, b->act) <
           std::tuple(!b->suppressed_by.empty(), a->grade, a->act);
  });
  return out;
}

std::string report_json(const fleet_report& of) {
  json::object out;
  out["at"] = render_time(of.at);
  out["knowledge"] = of.knowledge;
  json::object counts;
  for (const auto grade : {severity::Info, severity::Warning, severity::Major, severity::Critical})
    counts[name(grade)] = std::ranges::count_if(
        of.standing, [grade](const verdict_ref& one) { return one->grade == grade && one->suppressed_by.empty(); });
  json::object summary;
  summary["nodes"] = of.nodes;
  summary["devices"] = of.devices;
  summary["standing"] = std::move(counts);
  out["summary"] = std::move(summary);
  json::array standing;
  for (const auto& one : of.standing) standing.push_back(verdict_json(*one));
  out["verdicts"] = std::move(standing);
  json::array past;
  for (const auto& one : of.past) past.push_back(verdict_json(*one));
  out["past"] = std::move(past);
  return json::serialize(out);
}

std::string render_time(std::uint64_t ns) {
  if (ns == 0) return {};
  const auto seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string render_age(std::uint64_t from_ns, std::uint64_t to_ns) {
  const auto seconds = to_ns > from_ns ? (to_ns - from_ns) / 1'000'000'000 : 0;
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min";
  if (seconds < 86'400) return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
  return std::to_string(seconds / 86'400) + " d " + std::to_string(seconds / 3600 % 24) + " h";
}

std::string place_of(const verdict& what) {
  return what.who.node + '/' + (what.who.device ? std::to_string(*what.who.device) : "node");
}

std::string change_line(const verdict& what) {
  const std::string_view word = what.state == fb::VerdictState::Raised    ? " raised "
                                : what.state == fb::VerdictState::Changed ? " changed "
                                                                          : " cleared ";
  auto line = render_time(what.cleared_at != 0 ? what.cleared_at : what.changed_at);
  line += word;
  line += name(what.grade);
  line += '/';
  line += name(what.suppressed_by.empty() ? what.act : action::Ok);
  line += ' ' + place_of(what) + ' ' + what.pattern + ": " + what.title;
  if (!what.suppressed_by.empty()) line += " (a symptom of " + what.suppressed_by + ')';
  return line;
}

std::string report_text(const fleet_report& of) {
  std::string out = render_time(of.at) + ": " + std::to_string(of.nodes) + " nodes, " + std::to_string(of.devices) +
                    " devices, " + std::to_string(of.standing.size()) + " verdicts (rules of " + of.knowledge + ")\n";
  for (const auto& one : of.standing) {
    const auto& v = *one;
    out += "\n" + place_of(v) + "  " + std::string(name(v.grade)) + ", " +
           std::string(name(v.suppressed_by.empty() ? v.act : action::Ok)) + "  " + v.title + "  [" + v.pattern +
           "], for " + render_age(v.raised_at, of.at) + '\n';
    if (!v.suppressed_by.empty()) out += "  a symptom of " + v.suppressed_by + '\n';
    for (const auto& e : v.grounds) {
      out += "  because: " + e.text;
      if (!e.values.empty()) {
        std::array<char, 48> number{};
        std::snprintf(number.data(), number.size(), " (last %.6g", e.values.back());
        out += number.data() + (e.unit.empty() ? std::string(")") : ' ' + e.unit + ')');
      }
      out += '\n';
    }
    if (!v.missing.empty()) {
      out += "  not measured:";
      for (const auto& m : v.missing) out += ' ' + m;
      out += '\n';
    }
    for (const auto& r : v.rules_out) out += "  rules out: " + r + '\n';
    for (std::size_t i = 0; i < v.treatment.size(); ++i)
      out += "  " + std::to_string(i + 1) + ". " + v.treatment[i] + '\n';
    if (!v.clears_when.empty()) out += "  clears when: " + v.clears_when + '\n';
    if (!v.overridden_by.empty()) out += "  changed by operators: " + v.overridden_by + '\n';
  }
  return out;
}

}  // namespace infernex::diagnosis
