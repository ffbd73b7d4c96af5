#include <charconv>

#include <boost/json.hpp>

#include "actors/discovery/platform_labels.hpp"
#include "actors/discovery/static_list.hpp"
#include "nodes/settings.hpp"

namespace infernex::nodes {

using namespace std::chrono_literals;

namespace {

void read_labels(config::section& at, std::vector<std::pair<std::string, std::string>>& into) {
  boost::json::object labels;
  at.read("labels", labels);
  for (const auto& [key, value] : labels) {
    if (value.is_string())
      into.emplace_back(key, value.as_string());
    else
      at.complain("labels", "\"" + std::string(key) + "\": a text (a number, true or false in quotes)");
  }
}

void read_devices(config::section& at, std::vector<std::uint32_t>& into) {
  std::vector<std::string> words;
  at.read("devices", words);
  for (const auto& word : words) {
    std::uint32_t index = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), index);
    if (problem == std::errc{} && end == word.data() + word.size() && !word.empty())
      into.push_back(index);
    else
      at.complain("devices", "indices of devices, not \"" + word + "\"");
  }
}

void read_kv_transfer(config::section& engine, std::optional<discovery::kv_transfer>& into) {
  if (!engine.has("kv_transfer")) return;
  auto at = engine.below("kv_transfer");
  discovery::kv_transfer how;
  at.require("protocol")
      .read_choice("protocol", how.protocol,
                   {{"nixl", fb::KvProtocol::Nixl},
                    {"mooncake", fb::KvProtocol::Mooncake},
                    {"ascend", fb::KvProtocol::Ascend},
                    {"ascend-layerwise", fb::KvProtocol::AscendLayerwise},
                    {"sglang", fb::KvProtocol::Sglang}})
      .read("connector", how.connector)
      .read("engine_id", how.engine_id)
      .read("bootstrap_port", how.bootstrap_port, 1, 65'535);
  // Without a protocol the mistake has been reported; an entry without one would be reported again.
  if (how.protocol != fb::KvProtocol::None) into = std::move(how);
}

void read_engine(config::section& at, discovery::engine_descriptor& into) {
  at.require("instance")
      .read("instance", into.instance)
      .read("model", into.model)
      .require("url")
      .read("url", into.url)
      .read("kv_events", into.kv_events)
      .read("kv_replay", into.kv_replay)
      .read("kv_topic", into.kv_topic)
      .read_choice("role", into.role,
                   {{"aggregated", fb::EngineRole::Aggregated},
                    {"prefill", fb::EngineRole::Prefill},
                    {"decode", fb::EngineRole::Decode}})
      .read("node", into.node)
      .read("pd_group", into.pd_group)
      .read("block_size", into.block_size, 1, 65'536)
      .read("data_parallel_size", into.data_parallel_size, 1, 1024);
  read_labels(at, into.labels);
  read_devices(at, into.devices);
  read_kv_transfer(at, into.kv_transfer);
  discovery::read_platform_labels(into, at.has("role"));
}

void read_engines(config::section& agent, std::vector<discovery::engine_descriptor>& into) {
  auto entries = agent.list("engines");
  for (auto& at : entries) read_engine(at, into.emplace_back());
  const auto mistakes = discovery::find_mistakes(into);
  for (const auto& mistake : mistakes)
    // An absent key has been reported already, as such.
    if (mistake.index < entries.size() && entries[mistake.index].has(mistake.key))
      entries[mistake.index].complain(mistake.key, mistake.message);
  if (mistakes.empty()) into = discovery::expand_ranks(into);
}

void read_metrics(config::section& agent, std::vector<engine::metric_source>& into) {
  auto entries = agent.list("metrics");
  if (!entries.empty()) into.clear();
  for (auto& at : entries) {
    engine::metric_source source;
    std::string meaning;
    at.require("metric")
        .read("metric", source.metric)
        .require("meaning")
        .read("meaning", meaning)
        .read("label", source.label);
    const auto known = engine::metric_meaning_of(meaning);
    if (known)
      source.meaning = *known;
    else if (at.has("meaning"))
      at.complain("meaning", "not a meaning the agent knows: \"" + meaning + "\"");
    into.push_back(std::move(source));
  }
}

}  // namespace

void read_agent(config::section at, engine::settings& into) {
  read_engines(at, into.engines);
  read_metrics(at, into.metrics);
  at.read("probe_interval", into.health.probe_interval, 10ms, 60s)
      .read("probe_timeout", into.probe_timeout, 10ms, 60s)
      .read("suspicion_pause", into.health.suspicion_pause, 1ms, 60s)
      .read("refusals_to_down", into.health.refusals_to_down, 1, 100)
      .read("failures_to_down", into.health.failures_to_down, 1, 100)
      .read("scrape_interval", into.scrape_interval, 10ms, 60s)
      .read("scrape_timeout", into.scrape_timeout, 10ms, 60s)
      .read("models_interval", into.models_interval, 100ms, 1h)
      .read("parity_probe", into.parity_probe)
      .read("parity_timeout", into.parity_timeout, 100ms, 10min)
      .read("announce_interval", into.announce_interval, 100ms, 60s)
      .read("canonical_block_size", into.canonical_block_size, 1, 65'536)
      .read("max_blocks", into.max_blocks, 1, 1'000'000'000)
      .read("message_keys", into.message_keys, 1, 60'000)
      .read("admin_port", into.admin_port, 0, 65'535)
      .read("max_pending_groups", into.max_pending_groups, 1, 1024);
  at.below("kv_stream")
      .read("replay_pause", into.kv_stream.replay_pause, 1ms, 10min)
      .read("max_replay_pause", into.kv_stream.max_replay_pause, 1ms, 1h)
      .read("replay_timeout", into.kv_stream.replay_timeout, 10ms, 10min)
      .read("max_replay_failures", into.kv_stream.max_replay_failures, 1, 1000)
      .read("first_check", into.kv_stream.first_check, 10ms, 10min)
      .read("check_interval", into.kv_stream.check_interval, 10ms, 1h)
      .read("max_replay_time", into.kv_stream.max_replay_time, 10ms, 1h)
      .read("stale_after", into.kv_stream.stale_after, 10ms, 1h);
}

}  // namespace infernex::nodes
