#include "actors/indexer/match_sort.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include <boost/json.hpp>

#include "actors/indexer/index_name.hpp"

namespace infernex::indexer {

namespace json = boost::json;

namespace {

json::string hex(std::uint64_t key) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(key));
  return json::string(digits);
}

std::int64_t age_ms(const source_status& source, time_point now) {
  return std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now - source.last_heard).count(),
                                0);
}

json::value url_of(const engine_entry* engine) {
  if (!engine || engine->url.empty()) return nullptr;
  return json::string(engine->url);
}

void add_counts(json::object& out, const match_row& row, std::uint64_t block_size) {
  out["instance"] = row.instance;
  out["matched_tokens"] = row.blocks * block_size;
  out["device_tokens"] = row.device_blocks * block_size;
  out["host_tokens"] = (row.host_blocks - row.device_blocks) * block_size;
  out["disk_tokens"] = (row.blocks - row.host_blocks) * block_size;
  out["blocks"] = row.blocks;
  out["device_blocks"] = row.device_blocks;
  out["host_blocks"] = row.host_blocks;
}

void add_standing(json::object& out, const engine_entry* engine) {
  out["url"] = url_of(engine);
  out["state"] = nullptr;
  out["kv_health"] = nullptr;
  if (!engine) return;
  out["state"] = fb::EnumNameEngineState(engine->state);
  out["kv_health"] = fb::EnumNameKvHealth(engine->kv_health);
}

json::object row_json(const match_row& row, std::uint64_t block_size, std::uint64_t of_tokens, time_point now) {
  json::object out;
  add_counts(out, row, block_size);
  out["hit_rate"] =
      of_tokens == 0 ? 0.0 : static_cast<double>(row.blocks * block_size) / static_cast<double>(of_tokens);
  out["exact"] = row.exact();
  add_standing(out, row.engine);
  if (row.source)
    out["age_ms"] = age_ms(*row.source, now);
  else
    out["age_ms"] = nullptr;
  return out;
}

json::object head_of(const match_question& question) {
  json::object out;
  out["model"] = question.model;
  out["tenant"] = question.tenant.empty() ? default_tenant : std::string_view(question.tenant);
  if (!question.adapter.empty()) out["lora_name"] = question.adapter;
  out["block_size"] = *question.block_size;
  return out;
}

void set_blocks(match_row& row, const match& found) {
  row.blocks = found.blocks;
  row.device_blocks = std::min(found.device_blocks, found.blocks);
  row.host_blocks = std::clamp(found.host_blocks, row.device_blocks, found.blocks);
}

bool is_before(const match_row& a, const match_row& b) {
  return std::tuple(b.blocks, b.device_blocks, b.host_blocks, b.exact(), a.instance) <
         std::tuple(a.blocks, a.device_blocks, a.host_blocks, a.exact(), b.instance);
}

}  // namespace

std::vector<match_row> sort_matches(std::span<const match> found, const engine_list::model* engines,
                                    std::span<const source_status> sources, std::optional<std::uint32_t> top) {
  std::vector<match_row> rows;
  rows.reserve(sources.size());
  for (const auto& source : sources) rows.push_back({source.instance, 0, 0, 0, &source, nullptr});
  // The page of sources may be a few milliseconds older or younger than the index.
  for (const auto& m : found) {
    auto at = std::ranges::lower_bound(rows, m.instance, {}, &match_row::instance);
    if (at == rows.end() || at->instance != m.instance) at = rows.insert(at, {m.instance, 0, 0, 0, nullptr, nullptr});
    set_blocks(*at, m);
  }
  if (engines)
    for (auto& row : rows) row.engine = engines->find(row.instance);
  std::ranges::sort(rows, is_before);
  if (top && rows.size() > *top) rows.resize(*top);
  return rows;
}

std::vector<match_row> best_matches(std::span<const match> found, const engine_list::model* engines,
                                    std::span<const source_status> sources, std::size_t most) {
  std::vector<match_row> rows;
  rows.reserve(found.size());
  for (const auto& m : found)
    if (m.blocks != 0) set_blocks(rows.emplace_back(match_row{m.instance}), m);
  // What is left out is chosen before anything is looked up for it.
  if (rows.size() > most) {
    std::ranges::partial_sort(rows, rows.begin() + static_cast<std::ptrdiff_t>(most), is_before);
    rows.resize(most);
  }
  std::erase_if(rows, [&](match_row& row) {
    const auto at = std::ranges::lower_bound(sources, row.instance, {}, &source_status::instance);
    if (at == sources.end() || at->instance != row.instance) return true;
    row.instance = at->instance;
    row.source = &*at;
    row.engine = engines ? engines->find(row.instance) : nullptr;
    return false;
  });
  std::ranges::sort(rows, is_before);
  return rows;
}

std::size_t rows_of_each(std::size_t chains, std::optional<std::uint32_t> top) {
  constexpr std::size_t max_rows = 8'192;
  const auto most = std::max<std::size_t>(1, max_rows / std::max<std::size_t>(1, chains));
  return top ? std::min<std::size_t>(*top, most) : most;
}

namespace {

/// Why a block that the index does not show may be there; empty where it is known not to be.
std::string doubt_of(const match_row& row) {
  if (row.exact()) return "";
  if (row.engine && row.engine->kv_health == fb::KvHealth::Replaying) return "its agent is still replaying its events";
  if (row.engine && row.engine->kv_health == fb::KvHealth::Partial) return "its agent has lost events of it";
  return "the index is not known to be exact for it";
}

}  // namespace

std::string why_no_more(const match_row& row, const match_subject& about) {
  if (row.engine && !row.engine->holds_blocks())
    return "the engine is " + std::string(fb::EnumNameEngineState(row.engine->state)) + ": " + row.engine->reason;
  if (row.engine && row.engine->kv_health == fb::KvHealth::Absent) return "it publishes no KV events";
  const auto doubt = doubt_of(row);
  if (row.blocks < about.chain.size()) {
    const auto block =
        "block " + std::to_string(row.blocks) + " (key " + std::string(hex(about.chain[row.blocks])) + ")";
    return doubt.empty() ? block + " is not in its cache" : block + " is not known to be in its cache: " + doubt;
  }
  if (!about.prompt_tokens) return "every block asked for is there";
  const auto block_size = *about.question.block_size;
  const auto rest = *about.prompt_tokens - about.chain.size() * block_size;
  return rest == block_size ? "the last block holds the last token, which is always computed"
                            : "the last " + std::to_string(rest) + " tokens fill no block";
}

std::string render_match(const match_subject& about, std::span<const match_row> rows, time_point now) {
  const auto& question = about.question;
  auto out = head_of(question);
  const auto size = std::uint64_t{*question.block_size};
  if (about.prompt_tokens)
    out["prompt_tokens"] = *about.prompt_tokens;
  else
    out["prompt_tokens"] = nullptr;
  out["blocks"] = about.chain.size();
  out["tokens_by"] = about.tokens_by;
  if (question.explain) {
    json::array keys;
    for (const auto key : about.chain) keys.emplace_back(hex(key));
    out["block_keys"] = std::move(keys);
  }
  json::array instances;
  for (const auto& row : rows) {
    auto one = row_json(row, size, about.prompt_tokens.value_or(about.chain.size() * size), now);
    if (question.explain) one["why_no_more"] = why_no_more(row, about);
    instances.emplace_back(std::move(one));
  }
  out["instances"] = std::move(instances);
  return json::serialize(out);
}

std::string render_matches(const match_question& question, std::span<const std::vector<match_row>> matches,
                           const engine_list::model* engines, std::span<const source_status> sources, time_point now) {
  auto out = head_of(question);
  json::array answers;
  for (const auto& rows : matches) {
    json::array instances;
    for (const auto& row : rows) {
      json::object one;
      add_counts(one, row, *question.block_size);
      instances.emplace_back(std::move(one));
    }
    json::object answer;
    answer["instances"] = std::move(instances);
    answers.emplace_back(std::move(answer));
  }
  out["matches"] = std::move(answers);
  json::array coverage;
  for (const auto& source : sources) {
    const auto* engine = engines ? engines->find(source.instance) : nullptr;
    json::object one{{"instance", source.instance},
                     {"exact", is_exact(source, engine)},
                     {"sequence", source.sequence},
                     {"keys", source.keys},
                     {"age_ms", age_ms(source, now)}};
    add_standing(one, engine);
    coverage.emplace_back(std::move(one));
  }
  out["coverage"] = std::move(coverage);
  return json::serialize(out);
}

}  // namespace infernex::indexer
