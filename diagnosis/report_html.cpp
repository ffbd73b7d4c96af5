#include <algorithm>
#include <array>
#include <cstdio>

#include "diagnosis/report.hpp"

// The page. No script, nothing loaded from elsewhere: it can be mailed, kept and printed.
namespace infernex::diagnosis {

namespace {

constexpr std::string_view page_head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Hardware report</title><style>
:root{--line:#d5d9de;--soft:#5c6670;--critical:#a4132b;--major:#b35a00;--warning:#8a6d00;--info:#2c5f8a}
body{font:15px/1.45 system-ui,sans-serif;color:#1b2126;margin:0 auto;max-width:60rem;padding:1.5rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0}
.soft{color:var(--soft)}.counts{display:flex;gap:1rem;flex-wrap:wrap;margin:1rem 0}
.count{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .9rem;min-width:5rem}
.count b{display:block;font-size:1.4rem}
article{border:1px solid var(--line);border-left-width:.35rem;border-radius:.4rem;padding:.8rem 1rem;margin:.8rem 0;
break-inside:avoid}
.critical{border-left-color:var(--critical)}.major{border-left-color:var(--major)}
.warning{border-left-color:var(--warning)}.info{border-left-color:var(--info)}.symptom{opacity:.75}
.tag{font-size:.8rem;border:1px solid var(--line);border-radius:1rem;padding:.05rem .6rem;margin-right:.3rem}
ol,ul{margin:.3rem 0;padding-left:1.3rem}figure{margin:.6rem 0}figcaption{font-size:.85rem;color:var(--soft)}
table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{text-align:left;padding:.25rem .5rem .25rem 0;
border-bottom:1px solid var(--line);vertical-align:top}svg{width:100%;height:auto;max-width:34rem}
@media print{body{max-width:none;padding:0}article{border-color:#888}}
</style></head><body>
)";

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  return out;
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5g", value);
  return text.data();
}

/// A curve with its least and most, and what it was held against.
std::string chart(const evidence& of) {
  constexpr double width = 480, height = 96, left = 44, top = 8, bottom = 18;
  const auto [first, last] = std::minmax_element(of.times.begin(), of.times.end());
  auto [low, high] = std::minmax_element(of.values.begin(), of.values.end());
  double least = *low, most = *high;
  if (of.threshold) {
    least = std::min(least, *of.threshold);
    most = std::max(most, *of.threshold);
  }
  const double margin = most > least ? (most - least) * 0.08 : std::max(1.0, most * 0.05);
  least -= margin;
  most += margin;
  const auto x = [&](std::uint64_t at) {
    const double span = static_cast<double>(std::max<std::uint64_t>(1, *last - *first));
    return left + (width - left - 4) * static_cast<double>(at - *first) / span;
  };
  const auto y = [&](double value) { return top + (height - top - bottom) * (most - value) / (most - least); };
  std::string path;
  for (std::size_t i = 0; i < of.times.size(); ++i)
    path += (i == 0 ? "M" : "L") + short_number(x(of.times[i])) + ' ' + short_number(y(of.values[i]));
  std::string out = "<svg viewBox=\"0 0 480 96\" role=\"img\" aria-label=\"" + escape(of.text) + "\">";
  out += "<rect x=\"44\" y=\"8\" width=\"432\" height=\"70\" fill=\"none\" stroke=\"#d5d9de\"/>";
  if (of.threshold)
    out += "<line x1=\"44\" x2=\"476\" y1=\"" + short_number(y(*of.threshold)) + "\" y2=\"" +
           short_number(y(*of.threshold)) + "\" stroke=\"#a4132b\" stroke-dasharray=\"4 3\"/>";
  out += "<path d=\"" + path + "\" fill=\"none\" stroke=\"#1f5f99\" stroke-width=\"1.6\"/>";
  const auto label = [](double at_x, double at_y, std::string_view anchor, const std::string& text) {
    return "<text x=\"" + short_number(at_x) + "\" y=\"" + short_number(at_y) + "\" font-size=\"10\" text-anchor=\"" +
           std::string(anchor) + "\" fill=\"#5c6670\">" + escape(text) + "</text>";
  };
  out += label(40, 16, "end", short_number(most - margin)) + label(40, 78, "end", short_number(least + margin));
  out += label(44, 92, "start", render_time(*first)) + label(476, 92, "end", render_time(*last));
  return out + "</svg>";
}

std::string list(std::string_view title, const std::vector<std::string>& items, std::string_view tag) {
  if (items.empty()) return {};
  std::string out = "<p><b>" + std::string(title) + "</b></p><" + std::string(tag) + '>';
  for (const auto& one : items) out += "<li>" + escape(one) + "</li>";
  return out + "</" + std::string(tag) + '>';
}

std::string grounds_of(const verdict& v) {
  std::string out;
  for (const auto& e : v.grounds) {
    std::string caption = escape(e.text);
    if (e.code && e.event != fb::HwEventKind::AscendCode) caption += ", number " + std::to_string(*e.code);
    if (!e.values.empty()) caption += "; last " + short_number(e.values.back()) + ' ' + escape(e.unit);
    if (e.threshold) caption += "; limit " + short_number(*e.threshold);
    if (!e.times.empty()) caption += "; at " + render_time(e.times.back());
    if (e.values.empty() && e.times.size() > 1) caption += ", " + std::to_string(e.times.size()) + " times";
    out += "<figure>";
    if (e.values.size() > 1 && e.values.size() == e.times.size()) out += chart(e);
    out += "<figcaption>" + caption + "</figcaption></figure>";
  }
  return out;
}

std::string device_line(const verdict& v) {
  std::string out = escape(place_of(v));
  for (const auto* text : {&v.who.model, &v.who.device_id, &v.who.bus_id})
    if (!text->empty()) out += " &middot; " + escape(*text);
  if (!v.who.driver.empty()) out += " &middot; driver " + escape(v.who.driver);
  if (!v.who.firmware.empty()) out += " &middot; firmware " + escape(v.who.firmware);
  return out;
}

std::string article(const verdict& v, std::uint64_t now) {
  const bool symptom = !v.suppressed_by.empty();
  std::string out = "<article id=\"" + escape(v.id) + "\" class=\"" + std::string(name(v.grade)) +
                    (symptom ? " symptom" : "") + "\"><h3>" + escape(v.title) + "</h3>";
  out += "<p class=\"soft\">" + device_line(v) + "</p><p><span class=\"tag\">" + std::string(name(v.grade)) +
         "</span><span class=\"tag\">" + std::string(name(symptom ? action::Ok : v.act)) +
         "</span><span class=\"tag\">" + escape(v.pattern) + "</span><span class=\"soft\">since " +
         render_time(v.raised_at) + ", for " + render_age(v.raised_at, now) + "</span></p>";
  if (symptom)
    out += "<p>A symptom of <a href=\"#" + escape(v.suppressed_by) + "\">" + escape(v.suppressed_by) + "</a></p>";
  out += grounds_of(v) + list("What to do", v.treatment, "ol") + list("It is not", v.rules_out, "ul") +
         list("Not measured", v.missing, "ul");
  if (!v.clears_when.empty()) out += "<p><b>Clears when</b> " + escape(v.clears_when) + "</p>";
  if (!v.overridden_by.empty()) out += "<p><b>Changed by operators</b> " + escape(v.overridden_by) + "</p>";
  out += "<p class=\"soft\">Rule " + escape(v.rule);
  if (v.confidence) out += ", confidence " + short_number(*v.confidence);
  if (!v.source.empty()) out += ". Source: " + escape(v.source);
  return out + "</p></article>\n";
}

std::string past_table(const fleet_report& of) {
  if (of.past.empty()) return {};
  std::string out =
      "<h2>No longer so</h2><table><tr><th>Device</th><th>What</th><th>Severity</th><th>From</th><th>For</th></tr>";
  for (const auto& one : of.past)
    out += "<tr><td>" + escape(place_of(*one)) + "</td><td>" + escape(one->title) + "</td><td>" +
           std::string(name(one->grade)) + "</td><td>" + render_time(one->raised_at) + "</td><td>" +
           render_age(one->raised_at, one->cleared_at) + "</td></tr>\n";
  return out + "</table>";
}

}  // namespace

std::string report_html(const fleet_report& of) {
  std::string out(page_head);
  out += "<h1>Hardware report</h1><p class=\"soft\">" + render_time(of.at) + ", rules of " + escape(of.knowledge) +
         "</p><div class=\"counts\"><div class=\"count\"><b>" + std::to_string(of.nodes) +
         "</b>nodes</div><div class=\"count\"><b>" + std::to_string(of.devices) + "</b>devices</div>";
  for (const auto grade : {severity::Critical, severity::Major, severity::Warning, severity::Info}) {
    const auto n = std::ranges::count_if(
        of.standing, [grade](const verdict_ref& one) { return one->grade == grade && one->suppressed_by.empty(); });
    out += "<div class=\"count\"><b>" + std::to_string(n) + "</b>" + std::string(name(grade)) + "</div>";
  }
  out += "</div><h2>What stands</h2>";
  if (of.standing.empty()) out += "<p>Nothing is known to be wrong.</p>";
  for (const auto& one : of.standing) out += article(*one, of.at);
  return out + past_table(of) + "</body></html>\n";
}

}  // namespace infernex::diagnosis
