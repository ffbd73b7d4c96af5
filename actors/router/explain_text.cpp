#include "actors/router/explain_text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include <boost/json.hpp>

namespace infernex::router {

namespace json = boost::json;

namespace {

using row = std::vector<std::string>;

/// Columns as wide as their widest cell; the first and the last are aligned to the left.
std::string table(const std::vector<row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out;
  for (const auto& cells : rows) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string pad(widths[i] - cells[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i == 0 || i + 1 == widths.size() ? cells[i] + pad : pad + cells[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += "  " + line + '\n';
  }
  return out;
}

// Optional fields are null or left out.

std::string text_of(const json::object& from, std::string_view key) {
  const auto* value = from.if_contains(key);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::uint64_t count_of(const json::object& from, std::string_view key) {
  const auto* value = from.if_contains(key);
  return value && value->is_number() ? value->to_number<std::uint64_t>() : 0;
}

const json::array& list_of(const json::object& from, std::string_view key) {
  static const json::array none;
  const auto* value = from.if_contains(key);
  return value && value->is_array() ? value->get_array() : none;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string cached(const json::object& candidate) {
  const auto predicted = count_of(candidate, "predicted_blocks");
  const auto held = count_of(candidate, "overlap_blocks");
  return std::to_string(held) + (predicted > held ? " (" + std::to_string(predicted) + " predicted)" : "");
}

/// A column a scorer, as the first candidate that was scored has them: all have the same.
std::vector<std::string> scorers_of(const json::array& candidates) {
  std::vector<std::string> names;
  for (const auto& one : candidates) {
    for (const auto& score : list_of(one.as_object(), "scores")) names.push_back(text_of(score.as_object(), "scorer"));
    if (!names.empty()) break;
  }
  return names;
}

row row_of(const json::object& candidate, std::size_t scorers) {
  const auto dropped_by = text_of(candidate, "filtered_by");
  row cells{text_of(candidate, "instance")};
  if (!dropped_by.empty()) {
    cells.resize(scorers + 3, "-");
    cells.push_back("dropped: " + dropped_by);
    return cells;
  }
  cells.push_back(cached(candidate));
  for (const auto& one : list_of(candidate, "scores")) {
    const auto& score = one.as_object();
    const auto* weight = score.if_contains("weight");
    cells.push_back(number(score.at("value").to_number<double>()) + " x " +
                    number(weight ? weight->to_number<double>() : 1.0));
  }
  cells.resize(scorers + 2, "-");
  cells.push_back(number(candidate.at("total").to_number<double>()));
  cells.push_back("passed");
  return cells;
}

std::string candidates_table(const json::array& candidates) {
  if (candidates.empty()) return {};
  const auto scorers = scorers_of(candidates);
  std::vector<row> rows{{"ENGINE", "CACHED"}};
  rows[0].insert(rows[0].end(), scorers.begin(), scorers.end());
  rows[0].insert(rows[0].end(), {"TOTAL", "FILTERS"});
  for (const auto& one : candidates) rows.push_back(row_of(one.as_object(), scorers.size()));
  auto out = table(rows);
  for (const auto& one : candidates) {
    const auto health = text_of(one.as_object(), "health");
    if (!health.empty()) out += "  " + text_of(one.as_object(), "instance") + " has a verdict: " + health + '\n';
  }
  return out;
}

std::string explain(const json::object& choice, const std::string& model) {
  const auto block_size = count_of(choice, "block_size");
  std::string out =
      "model " + model + ", request " + text_of(choice, "request_id") + ", policy " + text_of(choice, "strategy");
  if (const auto* tokens = choice.if_contains("prompt_tokens"); tokens && tokens->is_number())
    out += ", " + std::to_string(tokens->to_number<std::uint64_t>()) + " tokens";
  if (block_size != 0) out += " in blocks of " + std::to_string(block_size);
  out += ", KV index " + std::string(choice.contains("index_used") && choice.at("index_used").as_bool() ? "" : "not ") +
         "used\n";
  out += std::to_string(count_of(choice, "engines")) + " engines of the model are known, " +
         std::to_string(count_of(choice, "considered")) + " passed all filters\n\n";
  out += candidates_table(list_of(choice, "candidates"));
  if (const auto& prefill = list_of(choice, "prefill_candidates"); !prefill.empty())
    out += "\nprefill\n" + candidates_table(prefill);
  const auto chosen = text_of(choice, "instance");
  out += "\nchoice: " + (chosen.empty() ? "none" : chosen) + "\nreason: " + text_of(choice, "reason") + '\n';
  return out;
}

}  // namespace

result<std::string> explain_text(std::string_view decision) {
  try {
    const auto parsed = json::parse({decision.data(), decision.size()});
    const auto& message = parsed.as_object();
    if (text_of(message, "message") != "RouteDecision")
      return error{errc::malformed_input, "not a route decision as `infernex sub` and `route explain --save` write it"};
    const auto& body = message.at("body").as_object();
    std::string out;
    for (const auto& choice : list_of(body, "choices"))
      out += (out.empty() ? "" : "\n") + explain(choice.as_object(), text_of(body, "model"));
    return out.empty() ? std::string("no decision in it\n") : out;
  } catch (const std::exception& problem) {
    return error{errc::malformed_input, problem.what()};
  }
}

}  // namespace infernex::router
