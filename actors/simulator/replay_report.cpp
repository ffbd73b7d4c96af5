#include "actors/simulator/replay_report.hpp"

#include <algorithm>
#include <cstdio>

#include <boost/json.hpp>

namespace infernex::simulator {

namespace {

namespace json = boost::json;

std::string fixed(std::optional<double> value, int digits) {
  if (!value) return "-";
  char text[64];
  const auto length = std::snprintf(text, sizeof text, "%.*f", digits, *value);
  return {text, static_cast<std::size_t>(length)};
}

std::string percent(std::optional<double> share) { return share ? fixed(*share * 100, 1) : "-"; }

void add_latency(std::vector<std::string>& cells, const std::optional<latency_summary>& one, int digits) {
  for (const auto member :
       {&latency_summary::mean, &latency_summary::p50, &latency_summary::p90, &latency_summary::p99})
    cells.push_back(one ? fixed((*one).*member, digits) : "-");
}

using table = std::vector<std::vector<std::string>>;

std::vector<std::string> cells_of(const replay_row& row) {
  const auto offered = row.offered_per_second > 0 ? std::optional(row.offered_per_second) : std::nullopt;
  std::vector<std::string> cells{row.policy, percent(row.load), fixed(offered, 2)};
  add_latency(cells, row.seen.ttft, 0);
  add_latency(cells, row.seen.inter_token, 1);
  add_latency(cells, row.seen.end_to_end, 0);
  cells.push_back(fixed(row.seen.requests_per_second, 2));
  cells.push_back(fixed(row.seen.output_tokens_per_second, 0));
  cells.push_back(percent(row.seen.goodput));
  cells.push_back(percent(row.seen.hit_share));
  cells.push_back(fixed(row.seen.work_imbalance, 2));
  cells.push_back(fixed(row.seen.load_variation, 2));
  cells.push_back(std::to_string(row.seen.shed));
  return cells;
}

/// The first column is text, the others are numbers.
std::string aligned(const table& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

json::value number(std::optional<double> value) { return value ? json::value(*value) : json::value(nullptr); }

json::value latency(const std::optional<latency_summary>& one) {
  if (!one) return nullptr;
  return {{"count", one->count}, {"mean", one->mean}, {"p50", one->p50},
          {"p90", one->p90},     {"p99", one->p99},   {"most", one->most}};
}

json::object row_json(const replay_row& row) {
  const auto& seen = row.seen;
  json::object one;
  one["policy"] = row.policy;
  one["load"] = number(row.load);
  one["offered_per_second"] = row.offered_per_second;
  one["warm_up_requests"] = seen.warm_up_requests;
  one["requests"] = seen.requests;
  one["completed"] = seen.completed;
  one["shed"] = seen.shed;
  one["failed"] = seen.failed;
  one["unfinished"] = seen.unfinished;
  one["prompt_tokens"] = seen.prompt_tokens;
  one["cached_tokens"] = seen.cached_tokens;
  one["output_tokens"] = seen.output_tokens;
  one["ttft_ms"] = latency(seen.ttft);
  one["inter_token_ms"] = latency(seen.inter_token);
  one["end_to_end_ms"] = latency(seen.end_to_end);
  one["requests_per_second"] = number(seen.requests_per_second);
  one["output_tokens_per_second"] = number(seen.output_tokens_per_second);
  one["goodput"] = number(seen.goodput);
  one["hit_share"] = number(seen.hit_share);
  one["work_imbalance"] = number(seen.work_imbalance);
  one["load_variation"] = number(seen.load_variation);
  return one;
}

}  // namespace

std::string report_text(const replay_report& report) {
  table rows{{"",    "load", "offered", "TTFT", "",       "",       "",        "ITL",  "",     "",     "",
              "E2E", "",     "",        "",     "served", "output", "goodput", "hits", "work", "load", "shed"},
             {"policy", "%",   "req/s", "mean", "p50",   "p90",   "p99", "mean", "p50",      "p90", "p99",
              "mean",   "p50", "p90",   "p99",  "req/s", "tok/s", "%",   "%",    "max/mean", "cv",  ""}};
  for (const auto& row : report.rows) rows.push_back(cells_of(row));
  auto text = report.trace + ": " + std::to_string(report.requests) + " requests, " + report.fleet + ", seed " +
              std::to_string(report.seed) + "; times in ms\n" + aligned(rows);
  for (const auto& row : report.rows) {
    if (row.seen.failed + row.seen.unfinished == 0) continue;
    text += row.policy + " at " + fixed(row.offered_per_second, 2) + " req/s: " + std::to_string(row.seen.failed) +
            " failed, " + std::to_string(row.seen.unfinished) + " unfinished\n";
  }
  if (const auto& live = report.observed_ttft) {
    text += "recorded TTFT: mean " + fixed(live->mean, 0) + ", p50 " + fixed(live->p50, 0) + ", p90 " +
            fixed(live->p90, 0) + ", p99 " + fixed(live->p99, 0) + " (" + std::to_string(live->count) + " requests)\n";
  }
  return text;
}

std::string report_json(const replay_report& report) {
  json::object whole;
  whole["trace"] = report.trace;
  whole["fleet"] = report.fleet;
  whole["requests"] = report.requests;
  whole["seed"] = report.seed;
  whole["recorded_ttft_ms"] = latency(report.observed_ttft);
  auto& rows = whole["rows"].emplace_array();
  for (const auto& row : report.rows) rows.push_back(row_json(row));
  return json::serialize(whole) + '\n';
}

}  // namespace infernex::simulator
