#include "actors/indexer/kv_text.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include <boost/json.hpp>

namespace infernex::indexer {

namespace json = boost::json;

namespace {

using row = std::vector<std::string>;

/// Columns as wide as their widest cell; all but the first `left` are aligned to the right.
std::string table(const std::vector<row>& rows, std::size_t left) {
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
      line += (i == 0 ? "" : "  ") + (i < left ? cells[i] + pad : pad + cells[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string text_of(const json::value& v) {
  if (v.is_null()) return "-";
  if (const auto* string = v.if_string()) return {string->data(), string->size()};
  return json::serialize(v);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::uint64_t mib = 1 << 20;
  if (bytes < mib) return std::to_string((bytes + 1023) / 1024) + " KiB";
  return std::to_string(bytes / mib) + "." + std::to_string(bytes % mib * 10 / mib) + " MiB";
}

template <class Make>
result<std::string> made_from(std::string_view text, Make make) {
  try {
    return make(json::parse({text.data(), text.size()}));
  } catch (const std::exception& problem) {
    return error{errc::malformed_input, problem.what()};
  }
}

std::string top(const json::value& sources) {
  std::vector<row> models{{"MODEL", "INSTANCES", "EXACT", "BLOCKS", "REFUSED", "MEMORY"}};
  std::vector<row> instances{{"MODEL", "INSTANCE", "STATE", "ENGINE", "BLOCKS", "HOST", "DISK", "SEQUENCE", "AGE"}};
  for (const auto& model : sources.at("models").as_array()) {
    const auto name = text_of(model.at("model"));
    const auto& of = model.at("instances").as_array();
    const auto exact = std::ranges::count_if(of, [](const json::value& i) { return i.at("exact").as_bool(); });
    models.push_back({name, std::to_string(of.size()), std::to_string(exact), text_of(model.at("distinct_keys")),
                      text_of(model.at("refused_keys")), bytes_text(model.at("bytes").to_number<std::uint64_t>())});
    for (const auto& i : of)
      instances.push_back({name, text_of(i.at("instance")), text_of(i.at("state")), text_of(i.at("engine_state")),
                           text_of(i.at("keys")), text_of(i.at("host_keys")), text_of(i.at("disk_keys")),
                           text_of(i.at("sequence")), text_of(i.at("age_ms")) + " ms"});
  }
  if (models.size() == 1) return "no engine is known\n";
  return table(models, 1) + '\n' + table(instances, 4);
}

std::string explain(const json::value& answer) {
  const auto blocks = answer.at("blocks").to_number<std::uint64_t>();
  std::string out = "model " + text_of(answer.at("model")) + ", tenant " + text_of(answer.at("tenant")) + ": " +
                    text_of(answer.at("prompt_tokens")) + " tokens (" + text_of(answer.at("tokens_by")) + "), " +
                    std::to_string(blocks) + " blocks of " + text_of(answer.at("block_size")) +
                    " that a cache can serve\n";
  if (const auto& keys = answer.at("block_keys").as_array(); !keys.empty())
    out += "first block " + text_of(keys.front()) + ", last block " + text_of(keys.back()) + '\n';
  std::vector<row> rows{{"INSTANCE", "BLOCKS", "TOKENS", "HIT", "DEVICE", "HOST", "DISK", "EXACT", "WHY NO MORE"}};
  for (const auto& i : answer.at("instances").as_array()) {
    const auto percent = static_cast<int>(i.at("hit_rate").to_number<double>() * 100 + 0.5);
    rows.push_back({text_of(i.at("instance")), text_of(i.at("blocks")) + "/" + std::to_string(blocks),
                    text_of(i.at("matched_tokens")), std::to_string(percent) + "%", text_of(i.at("device_tokens")),
                    text_of(i.at("host_tokens")), text_of(i.at("disk_tokens")), i.at("exact").as_bool() ? "yes" : "no",
                    text_of(i.at("why_no_more"))});
  }
  return out + '\n' + table(rows, 1);
}

}  // namespace

result<std::string> top_text(std::string_view sources) { return made_from(sources, top); }

result<std::string> explain_text(std::string_view answer) { return made_from(answer, explain); }

result<std::string> only_model(std::string_view sources) {
  std::size_t count = 0;
  auto name = made_from(sources, [&count](const json::value& page) {
    const auto& models = page.at("models").as_array();
    count = models.size();
    return count == 0 ? std::string() : text_of(models.front().at("model"));
  });
  if (!name || count == 1) return name;
  if (count == 0) return error{errc::not_found, "no engine is known"};
  return error{errc::invalid_request, "several models are known: name one with --model"};
}

}  // namespace infernex::indexer
