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

json::object row_json(const match_row& row, std::uint64_t block_size, std::uint64_t of_tokens, time_point now) {
  json::object out;
  out["instance"] = row.instance;
  if (row.engine && !row.engine->url.empty())
    out["url"] = row.engine->url;
  else
    out["url"] = nullptr;
  out["matched_tokens"] = row.blocks * block_size;
  out["hit_rate"] =
      of_tokens == 0 ? 0.0 : static_cast<double>(row.blocks * block_size) / static_cast<double>(of_tokens);
  out["device_tokens"] = row.device_blocks * block_size;
  out["host_tokens"] = (row.host_blocks - row.device_blocks) * block_size;
  out["disk_tokens"] = (row.blocks - row.host_blocks) * block_size;
  out["blocks"] = row.blocks;
  out["device_blocks"] = row.device_blocks;
  out["host_blocks"] = row.host_blocks;
  out["exact"] = row.exact();
  if (row.engine)
    out["state"] = fb::EnumNameEngineState(row.engine->state);
  else
    out["state"] = nullptr;
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
    at->blocks = m.blocks;
    at->device_blocks = std::min(m.device_blocks, m.blocks);
    at->host_blocks = std::clamp(m.host_blocks, at->device_blocks, m.blocks);
  }
  if (engines)
    for (auto& row : rows) row.engine = engines->find(row.instance);
  std::ranges::sort(rows, is_before);
  if (top && rows.size() > *top) rows.resize(*top);
  return rows;
}

std::string why_no_more(const match_row& row, const match_subject& about) {
  if (row.engine && !row.engine->holds_blocks())
    return "the engine is " + std::string(fb::EnumNameEngineState(row.engine->state)) + ": " + row.engine->reason;
  if (row.engine && row.engine->kv_health == fb::KvHealth::Absent) return "it publishes no KV events";
  const std::string doubt = row.exact() ? "" : "; the index is not known to be exact for it";
  if (row.blocks < about.chain.size())
    return "block " + std::to_string(row.blocks) + " (key " + std::string(hex(about.chain[row.blocks])) +
           ") is not in its cache" + doubt;
  if (!about.prompt_tokens) return "every block asked for is there" + doubt;
  const auto block_size = *about.question.block_size;
  const auto rest = *about.prompt_tokens - about.chain.size() * block_size;
  return (rest == block_size ? "the last block holds the last token, which is always computed"
                             : "the last " + std::to_string(rest) + " tokens fill no block") +
         doubt;
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
                           std::span<const source_status> sources, time_point now) {
  auto out = head_of(question);
  json::array answers;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    json::array instances;
    const auto tokens = question.chains.lists[i].size() * std::uint64_t{*question.block_size};
    for (const auto& row : matches[i])
      if (row.blocks != 0) instances.emplace_back(row_json(row, *question.block_size, tokens, now));
    json::object answer;
    answer["instances"] = std::move(instances);
    answers.emplace_back(std::move(answer));
  }
  out["matches"] = std::move(answers);
  json::array coverage;
  for (const auto& source : sources)
    coverage.push_back({{"instance", source.instance},
                        {"exact", source.exact},
                        {"sequence", source.sequence},
                        {"keys", source.keys},
                        {"age_ms", age_ms(source, now)}});
  out["coverage"] = std::move(coverage);
  return json::serialize(out);
}

}  // namespace infernex::indexer
