#include "actors/simulator/replay_report.hpp"

#include <boost/json.hpp>
#include <doctest/doctest.h>

#include "actors/simulator/replay_plot.hpp"

using namespace infernex::simulator;

namespace {

replay_row row(std::string policy, double load, double p50, double p99) {
  replay_row one{.policy = std::move(policy), .offered_per_second = 10 * load, .load = load, .seen = {}};
  one.seen.requests = 100;
  one.seen.completed = 97;
  one.seen.shed = 3;
  one.seen.goodput = 0.955;
  one.seen.ttft =
      latency_summary{.count = 97, .mean = p50 + 1, .p50 = p50, .p90 = p99 - 1, .p99 = p99, .most = p99 + 1};
  return one;
}

replay_report two_policies() {
  return {.trace = "t.jsonl",
          .fleet = "8 engines",
          .requests = 100,
          .seed = 7,
          .observed_ttft = {},
          .rows = {row("kv-aware", 0.5, 100, 400), row("round-robin", 0.5, 200, 2000), row("kv-aware", 0.9, 150, 900),
                   row("round-robin", 0.9, 300, 9000)}};
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the table has a row a policy and load, and a dash for what was not measured") {
  const auto text = report_text(two_policies());
  CHECK(text.starts_with("t.jsonl: 100 requests, 8 engines, seed 7; times in ms\n"));
  CHECK(count(text, "\n") == 7);
  const auto at = text.find("round-robin  90.0     9.00   301  300  8999  9000");
  REQUIRE(at != std::string::npos);
  const auto line = text.substr(at, text.find('\n', at) - at);
  CHECK(line.find("95.5") != std::string::npos);
  CHECK(line.ends_with("3"));
  CHECK(line.find("  -  ") != std::string::npos);
  CHECK(text.find("recorded") == std::string::npos);
}

TEST_CASE("what failed or never ended, and what was recorded, are said under the table") {
  auto report = two_policies();
  report.rows[2].seen.failed = 4;
  report.rows[2].seen.unfinished = 1;
  report.observed_ttft = latency_summary{.count = 9, .mean = 12, .p50 = 11, .p90 = 21, .p99 = 31, .most = 41};
  const auto text = report_text(report);
  CHECK(text.find("kv-aware at 9.00 req/s: 4 failed, 1 unfinished\n") != std::string::npos);
  CHECK(text.find("recorded TTFT: mean 12, p50 11, p90 21, p99 31 (9 requests)\n") != std::string::npos);
}

TEST_CASE("JSON holds every figure, null for what was not measured") {
  const auto whole = boost::json::parse(report_json(two_policies())).as_object();
  CHECK(whole.at("seed").to_number<int>() == 7);
  CHECK(whole.at("recorded_ttft_ms").is_null());
  REQUIRE(whole.at("rows").as_array().size() == 4);
  const auto& last = whole.at("rows").as_array()[3].as_object();
  CHECK(last.at("policy").as_string() == "round-robin");
  CHECK(last.at("load").as_double() == 0.9);
  CHECK(last.at("ttft_ms").at("p99").as_double() == 9000);
  CHECK(last.at("goodput").as_double() == 0.955);
  CHECK(last.at("shed").to_number<int>() == 3);
  CHECK(last.at("hit_share").is_null());
  CHECK(last.at("inter_token_ms").is_null());
}

TEST_CASE("the plot has a solid and a dashed line a policy") {
  auto report = two_policies();
  report.trace = "<a & b>";
  const auto svg = plot_svg(report);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<polyline") == 4);
  CHECK(count(svg, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"#0072B2\" stroke-dasharray") == 1);
  CHECK(count(svg, "<circle") == 8);
  CHECK(svg.find("&lt;a &amp; b&gt;") != std::string::npos);
  CHECK(svg.find("% of full load") != std::string::npos);
  // The axes: 50 to 90 %, 100 to 10000 ms; the ends of kv-aware's p50 at 80,420 and 640,…
  CHECK(svg.find("points=\"80.0,420.0 640.0,") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
}

TEST_CASE("loads that are not relative, a single load, and nothing at all can be drawn") {
  auto report = two_policies();
  report.rows.resize(1);
  report.rows[0].load.reset();
  const auto one = plot_svg(report);
  CHECK(one.find("requests/s") != std::string::npos);
  CHECK(count(one, "<circle") == 2);
  CHECK(one.find("nan") == std::string::npos);
  report.rows.clear();
  const auto none = plot_svg(report);
  CHECK(count(none, "<polyline") == 0);
  CHECK(none.find("no request had a first token") != std::string::npos);
}

TEST_CASE("ticks are round numbers that cover the values") {
  CHECK(linear_ticks(50, 90, 6) == std::vector<double>{50, 60, 70, 80, 90});
  CHECK(linear_ticks(0, 7, 6) == std::vector<double>{0, 2, 4, 6, 8});
  CHECK(linear_ticks(3, 3, 6).size() == 2);
  CHECK(decade_ticks(100, 9000) == std::vector<double>{100, 200, 500, 1000, 2000, 5000, 10000});
  CHECK(decade_ticks(30, 40) == std::vector<double>{20, 50});
  CHECK(decade_ticks(7, 7) == std::vector<double>{5, 10});
}
