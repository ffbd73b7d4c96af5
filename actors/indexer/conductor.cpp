#include "actors/indexer/conductor.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include <boost/json.hpp>

#include "actors/discovery/static_list.hpp"

namespace infernex::indexer {

namespace json = boost::json;

namespace {

constexpr std::uint32_t max_rank = 65'535;
constexpr std::uint32_t max_block_size = 65'536;

std::string instance_name(const std::string& id, const std::optional<std::uint32_t>& rank) {
  return rank ? id + "-dp" + std::to_string(*rank) : id;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

std::string field_of(std::string_view descriptor_key) {
  if (descriptor_key == "kv_events") return "endpoint";
  if (descriptor_key == "kv_replay") return "replay_endpoint";
  if (descriptor_key == "instance") return "instance_id";
  if (descriptor_key == "model") return "modelname";
  return std::string(descriptor_key);
}

void check_type(request_body& body) {
  const auto type = body.text("type");
  if (type.empty() || equals_ignoring_case(type, "vllm") || equals_ignoring_case(type, "sglang")) return;
  body.complain("type", "only the KV events of vLLM and SGLang engines can be followed, not those of \"" + type + "\"");
}

}  // namespace

std::optional<refusal> read_registration(std::string_view text, registration& into) {
  request_body body(text);
  into.id = body.required_text("instance_id");
  into.names = {body.required_text("modelname"), body.text("tenant_id")};
  if (into.names.tenant.empty()) into.names.tenant = default_tenant;
  into.rank = body.number("dp_rank", 0, max_rank);
  check_type(body);
  auto& engine = into.engine;
  engine.kv_events = body.required_text("endpoint");
  engine.kv_replay = body.text("replay_endpoint");
  // A caller has no say about this machine's own sockets.
  for (const auto* field : {"endpoint", "replay_endpoint"})
    if (const auto to = body.text(field); !to.empty() && !to.starts_with("tcp://"))
      body.complain(field, "an endpoint tcp://host:port is wanted");
  engine.url = body.text("url");
  engine.block_size = body.number("block_size", 1, max_block_size);
  if (body.mistake()) return body.mistake();
  const auto index = index_name(into.names.model, into.names.tenant);
  if (!index) return refusal{400, "modelname, tenant_id: not a pair of names that can be indexed", {}, "modelname"};
  engine.model = *index;
  // The engine does not know its model by the tenant's name for it.
  engine.routable = into.names.tenant == default_tenant;
  engine.instance = instance_name(into.id, into.rank);
  for (const auto& mistake : discovery::find_mistakes({&engine, 1})) {
    // Whoever has only events has no endpoint that could be asked.
    if (mistake.key != "url" || !engine.url.empty()) body.complain(field_of(mistake.key), mistake.message);
  }
  return body.mistake();
}

std::string render_registered(const registration& of) {
  return json::serialize(json::object{{"status", "registered successfully"}, {"instance_id", of.id}});
}

bool unregistration::names(const registration& one) const {
  return one.id == id && (!index || *index == one.engine.model) && (!rank || rank == one.rank.value_or(0));
}

std::optional<refusal> read_unregistration(std::string_view text, unregistration& into) {
  request_body body(text);
  into.id = body.required_text("instance_id");
  into.rank = body.number("dp_rank", 0, max_rank);
  const auto model = body.text("modelname");
  const auto tenant = body.text("tenant_id");
  if (body.mistake()) return body.mistake();
  if (!model.empty()) {
    into.index = index_name(model, tenant);
    if (!into.index)
      return refusal{400, "modelname, tenant_id: not a pair of names that can be indexed", {}, "modelname"};
  }
  return std::nullopt;
}

std::string render_unregistered(std::span<const registration> removed) {
  json::array names;
  for (const auto& one : removed) {
    const auto name = one.id + "|" + one.names.tenant + "|" + std::to_string(one.rank.value_or(0));
    names.emplace_back(json::string(name));
  }
  return json::serialize(
      json::object{{"status", "unregistered successfully"}, {"removed_instances", std::move(names)}});
}

std::optional<refusal> read_query(std::string_view text, query_by by, conductor_query& into) {
  request_body body(text);
  auto& question = into.question;
  question.by = by == query_by::tokens ? match_question::form::tokens : match_question::form::keys;
  question.model = body.required_text("model");
  question.tenant = body.text("tenant_id");
  question.adapter = body.text("lora_name");
  question.salt = body.text("cache_salt");
  question.block_size = body.number("block_size", 1, max_block_size);
  into.instance = body.text("instance_id");
  const auto* chain = by == query_by::tokens ? "token_ids" : "seq_hashes";
  if (!body.has(chain)) body.complain(chain, "is required");
  if (by == query_by::tokens)
    question.token_ids = body.tokens(chain);
  else
    question.chains.lists = {body.hashes(chain)};
  if (body.mistake()) return body.mistake();
  auto index = index_name(question.model, question.tenant);
  if (!index) return refusal{400, "model, tenant_id: not a pair of names that can be indexed", {}, "model"};
  question.index = *std::move(index);
  return std::nullopt;
}

ranked_name split_rank(std::string_view instance) {
  const auto at = instance.rfind("-dp");
  if (at == std::string_view::npos || at == 0 || at + 3 == instance.size()) return {instance, 0};
  std::uint32_t rank = 0;
  const auto* last = instance.data() + instance.size();
  const auto [end, problem] = std::from_chars(instance.data() + at + 3, last, rank);
  if (problem != std::errc{} || end != last || rank > max_rank) return {instance, 0};
  return {instance.substr(0, at), rank};
}

std::string render_query(const conductor_query& query, std::span<const match_row> rows) {
  struct totals {
    std::uint64_t any = 0;
    std::uint64_t device = 0;
    std::uint64_t host = 0;
    std::uint64_t disk = 0;
    std::map<std::uint32_t, std::uint64_t> ranks;
  };
  const auto size = std::uint64_t{query.question.block_size.value_or(0)};
  std::map<std::string_view, totals> found;
  for (const auto& row : rows) {
    const auto name = split_rank(row.instance);
    if (!query.instance.empty() && name.id != query.instance && row.instance != query.instance) continue;
    auto& of = found[name.id];
    of.any = std::max(of.any, row.blocks * size);
    of.device = std::max(of.device, row.device_blocks * size);
    // A tier from which nothing would come is not shown as holding something.
    if (row.host_blocks > row.device_blocks) of.host = std::max(of.host, row.host_blocks * size);
    if (row.blocks > row.host_blocks) of.disk = std::max(of.disk, row.blocks * size);
    of.ranks[name.rank] = std::max(of.ranks[name.rank], row.blocks * size);
  }
  json::object instances;
  for (const auto& [id, of] : found) {
    json::object ranks;
    for (const auto& [rank, tokens] : of.ranks) ranks[std::to_string(rank)] = tokens;
    instances[{id.data(), id.size()}] = {
        {"longest_matched", of.any}, {"GPU", of.device}, {"DP", std::move(ranks)}, {"CPU", of.host}, {"DISK", of.disk}};
  }
  const auto& tenant = query.question.tenant;
  json::object out;
  out[tenant.empty() ? std::string(default_tenant) : tenant] = std::move(instances);
  return json::serialize(out);
}

}  // namespace infernex::indexer
