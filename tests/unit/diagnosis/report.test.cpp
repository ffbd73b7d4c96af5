#include "diagnosis/report.hpp"

#include <boost/json/parse.hpp>

#include "tests/unit/diagnosis/support.hpp"

namespace infernex::diagnosis {

namespace {

test::bench with_verdicts() {
  test::bench b(fb::HwVendor::Ascend);
  b.device().id = "<id & \"quotes\">";
  b.set(metric::AicoreUtilization, 100);
  b.set(metric::MemoryBandwidthUtilization, 0);
  b.run(120);
  b.code(0x80E01801);
  b.run(2);
  return b;
}

}  // namespace

TEST_CASE("the report as JSON says all that stands, the gravest first") {
  const auto b = with_verdicts();
  const auto told = make_report(b.rules, static_cast<std::uint64_t>(b.now) * 1'000'000);
  const auto parsed = boost::json::parse(report_json(told)).as_object();
  const auto& verdicts = parsed.at("verdicts").as_array();
  REQUIRE(verdicts.size() == 2);
  CHECK(parsed.at("summary").as_object().at("standing").as_object().at("major").as_int64() == 2);
  const auto& first = verdicts[0].as_object();
  CHECK(first.at("node") == "n0");
  CHECK(first.at("device") == 0);
  CHECK(first.at("action") == "isolate");
  CHECK(first.at("evidence").as_array().size() >= 1);
  CHECK(!first.at("treatment").as_array().empty());
  CHECK(make_report(b.rules, 1, "another").standing.empty());
}

TEST_CASE("the page has every verdict and a chart of its evidence, and needs no script") {
  auto b = with_verdicts();
  const auto page = report_html(make_report(b.rules, static_cast<std::uint64_t>(b.now) * 1'000'000));
  for (const auto& one : b.rules.book().all_standing()) {
    CHECK(page.find("id=\"" + one->id + '"') != page.npos);
    CHECK(page.find(one->title) != page.npos);
  }
  CHECK(page.find("<svg viewBox") != page.npos);
  CHECK(page.find("<script") == page.npos);
  CHECK(page.find("http") == page.npos);
  CHECK(page.find("<id & ") == page.npos);
  CHECK(page.find("&lt;id &amp; &quot;quotes&quot;&gt;") != page.npos);
  // What has passed is in a table.
  b.no_codes();
  b.run(20);
  const auto later = report_html(make_report(b.rules, static_cast<std::uint64_t>(b.now) * 1'000'000));
  CHECK(later.find("No longer so") != later.npos);
}

TEST_CASE("an empty fleet has a report too") {
  const engine none(test::embedded());
  const auto told = make_report(none, 1'700'000'000'000'000'000);
  CHECK(report_html(told).find("Nothing is known to be wrong") != std::string::npos);
  CHECK(report_text(told) == "2023-11-14T22:13:20Z: 0 nodes, 0 devices, 0 verdicts (rules of 2026-11-22)\n");
}

TEST_CASE("for a terminal: reasons, steps and what clears it") {
  const auto b = with_verdicts();
  const auto text = report_text(make_report(b.rules, static_cast<std::uint64_t>(b.now) * 1'000'000));
  CHECK(text.find("n0/0  major, isolate  Looks busy and does nothing  [hang]") != text.npos);
  CHECK(text.find("  because: aicore_utilization at least 95 (last 100 %)") != text.npos);
  CHECK(text.find("  not measured: utilization power process_count") != text.npos);
  CHECK(text.find("  1. Restart the engine") != text.npos);
  const auto line = change_line(*b.told.front());
  CHECK(line.find(" raised major/isolate n0/0 hang: Looks busy") != line.npos);
  CHECK(render_age(0, 95'000'000'000) == "1 min");
  CHECK(render_age(0, 12'000'000'000'000) == "3 h 20 min");
}

}  // namespace infernex::diagnosis
