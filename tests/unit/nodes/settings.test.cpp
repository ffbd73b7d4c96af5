#include "nodes/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

using namespace infernex;
using nodes::node_settings;

namespace {

std::vector<std::string> mistakes_of(std::string_view text, node_settings& into) {
  auto file = config::document::parse(text, "node.yaml");
  nodes::read_settings(file, into);
  std::vector<std::string> lines;
  for (const auto& one : file.problems()) lines.push_back(config::render(one));
  return lines;
}

std::string example() {
  std::ifstream file(INFERNEX_SOURCE_DIR "/docs/infernex.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the example configuration has no mistake and says the defaults") {
  node_settings read;
  CHECK(mistakes_of(example(), read) == std::vector<std::string>{});
  const node_settings plain;
  CHECK(read.gateway.max_body_bytes == plain.gateway.max_body_bytes);
  CHECK(read.gateway.timeout == plain.gateway.timeout);
  CHECK(read.gateway.life_interval == plain.gateway.life_interval);
  CHECK(read.gateway.tokens.chain == plain.gateway.tokens.chain);
  CHECK(read.gateway.tokens.cache_bytes == plain.gateway.tokens.cache_bytes);
  CHECK(read.gateway.policy.weight_overlap == plain.gateway.policy.weight_overlap);
  CHECK(read.gateway.backoff_most == plain.gateway.backoff_most);
  CHECK(read.router.match_timeout == plain.router.match_timeout);
  CHECK(read.router.reservations.max_open == plain.router.reservations.max_open);
  CHECK(read.router.reservations.expiry == plain.router.reservations.expiry);
  CHECK(read.router.fleet.silence == plain.router.fleet.silence);
  CHECK(read.router.max_pending == plain.router.max_pending);
  CHECK(read.indexer.index.max_bytes == plain.indexer.index.max_bytes);
  CHECK(read.indexer.delta_credit == plain.indexer.delta_credit);
  CHECK(read.indexer.ready.listen_first == plain.indexer.ready.listen_first);
  CHECK(read.indexer.ready.listen_alone == plain.indexer.ready.listen_alone);
  CHECK(read.indexer.ready.patience == plain.indexer.ready.patience);
  CHECK(read.indexer.max_body_bytes == plain.indexer.max_body_bytes);
  CHECK(read.indexer.request_timeout == plain.indexer.request_timeout);
  CHECK(read.indexer.max_registered == plain.indexer.max_registered);
  CHECK(read.indexer.allow_register == plain.indexer.allow_register);
  CHECK(read.indexer.tracking.sync.max_backoff == plain.indexer.tracking.sync.max_backoff);
  CHECK(read.agent.health.probe_interval == plain.agent.health.probe_interval);
  CHECK(read.agent.max_blocks == plain.agent.max_blocks);
  CHECK(read.agent.metrics == plain.agent.metrics);
  CHECK(read.agent.kv_stream.check_interval == plain.agent.kv_stream.check_interval);
  CHECK(read.simulator.total_blocks == plain.simulator.total_blocks);
  CHECK(read.simulator.eos_probability == plain.simulator.eos_probability);
  CHECK(read.simulator.faults == plain.simulator.faults);
  const auto& kv = read.simulator.kv_transfer;
  CHECK(kv.protocol == plain.simulator.kv_transfer.protocol);
  CHECK(kv.role == plain.simulator.kv_transfer.role);
  CHECK(kv.engine_id == plain.simulator.kv_transfer.engine_id);
  CHECK(kv.bandwidth_gbps == plain.simulator.kv_transfer.bandwidth_gbps);
  CHECK(kv.bytes_per_token == plain.simulator.kv_transfer.bytes_per_token);
  CHECK(kv.latency == plain.simulator.kv_transfer.latency);
  CHECK(kv.lease == plain.simulator.kv_transfer.lease);
  CHECK(kv.timeout == plain.simulator.kv_transfer.timeout);
  CHECK(kv.on_failure == plain.simulator.kv_transfer.on_failure);
  CHECK(kv.stale_engine == plain.simulator.kv_transfer.stale_engine);
  CHECK(read.simulator.costs.prefill_constant == plain.simulator.costs.prefill_constant);
  CHECK(read.up.engines == plain.up.engines);
  CHECK(read.diagnosis.limits.max_nodes == plain.diagnosis.limits.max_nodes);
  CHECK(read.diagnosis.limits.max_devices == plain.diagnosis.limits.max_devices);
  CHECK(read.diagnosis.limits.forget == plain.diagnosis.limits.forget);
  CHECK(read.diagnosis.sample_credit == plain.diagnosis.sample_credit);
  CHECK(read.diagnosis.event_credit == plain.diagnosis.event_credit);
  CHECK(read.diagnosis.repeat == plain.diagnosis.repeat);
  CHECK(read.diagnosis.knowledge == plain.diagnosis.knowledge);
  CHECK(read.monitor.interval == plain.monitor.interval);
  CHECK(read.monitor.expected_devices == plain.monitor.expected_devices);
  CHECK(read.monitor.call_deadline == plain.monitor.call_deadline);
  CHECK(read.monitor.admin_port == plain.monitor.admin_port);
  CHECK(read.monitor.page_nodes == plain.monitor.page_nodes);
  CHECK(read.monitor.record_bytes == plain.monitor.record_bytes);
  CHECK(read.monitor.mirror == plain.monitor.mirror);
  CHECK(read.monitor.mirror_subject == plain.monitor.mirror_subject);
  CHECK(read.monitor.sim.nodes == plain.monitor.sim.nodes);
  CHECK(read.monitor.sim.devices == plain.monitor.sim.devices);
  CHECK(read.monitor.sim.model == plain.monitor.sim.model);
  CHECK(read.monitor.sim.node_prefix == plain.monitor.sim.node_prefix);
  CHECK(read.monitor.sim.seed == plain.monitor.sim.seed);
  CHECK(read.monitor.sim.period_ms == plain.monitor.sim.period_ms);
  CHECK(read.monitor.sim.incidents == plain.monitor.sim.incidents);
  CHECK(read.proxy.group.name == plain.proxy.group.name);
  CHECK(read.proxy.group.breaker.most_pause == plain.proxy.group.breaker.most_pause);
  CHECK(read.proxy.exchange.first_token_timeout == plain.proxy.exchange.first_token_timeout);
  CHECK(read.proxy.exchange.max_answer_bytes == plain.proxy.exchange.max_answer_bytes);
  CHECK(read.proxy.exchange.tries.max_attempts == plain.proxy.exchange.tries.max_attempts);
  CHECK(read.proxy.exchange.tries.local_prefill == plain.proxy.exchange.tries.local_prefill);
  CHECK(read.proxy.add_timeout == plain.proxy.add_timeout);
}

TEST_CASE("five mistakes are five lines, each at its place, and what is right is read") {
  node_settings read;
  const auto lines = mistakes_of(
      "gateway:\n"
      "  port: web\n"
      "  timeuot: 3s\n"
      "router:\n"
      "  policy: {strategy: cleverest, weight_overlap: -1}\n"
      "agent:\n"
      "  engines:\n"
      "    - {url: 'http://127.0.0.1:8001'}\n"
      "simulator:\n"
      "  block_size: 32\n",
      read);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].starts_with("node.yaml:2:9: gateway.port: "));
  CHECK(lines[1].starts_with("node.yaml:3:3: gateway.timeuot: "));
  CHECK(lines[1].find("timeout") != std::string::npos);
  CHECK(lines[2].starts_with("node.yaml:5:22: router.policy.strategy: "));
  CHECK(lines[2].find("kv-aware") != std::string::npos);
  CHECK(lines[3].starts_with("node.yaml:5:49: router.policy.weight_overlap: "));
  CHECK(lines[4].find("agent.engines[0]") != std::string::npos);
  CHECK(lines[4].find("instance") != std::string::npos);
  CHECK(read.simulator.block_size == 32);
}

TEST_CASE("a KV manager is read by the names of older routers, and its mistakes are told") {
  node_settings read;
  CHECK(mistakes_of("router:\n  kvmanager: {url: cache-indexer-service, port: 8081, timeout: 2}\n", read).empty());
  REQUIRE(read.router.kvmanager);
  CHECK(router::target_of(*read.router.kvmanager) == "http://cache-indexer-service:8081/match_sort");
  CHECK(read.router.kvmanager->timeout == std::chrono::seconds(2));
  const auto lines = mistakes_of("router:\n  kvmanager:\n    url: http://host:80\n    matchpath: /x\n", read);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("node.yaml:3:10: router.kvmanager.url: "));
  CHECK(lines[1].starts_with("node.yaml:4:5: router.kvmanager.matchpath: "));
  CHECK(mistakes_of("router:\n  kvmanager: {port: 1}\n", read).size() == 1);
  // A gateway of the same file would not wait for this router; without one, nobody can know.
  const std::string slow = "router:\n  kvmanager: {url: host, max_wait: 300ms}\n";
  CHECK(mistakes_of(slow, read).empty());
  REQUIRE(mistakes_of("gateway: {}\n" + slow, read).size() == 1);
  CHECK(mistakes_of("gateway: {}\n" + slow, read)[0].find("router.kvmanager.max_wait: ") != std::string::npos);
  CHECK(mistakes_of("gateway: {route_timeout: 400ms}\n" + slow, read).empty());
  node_settings none;
  CHECK(mistakes_of("router: {}\n", none).empty());
  CHECK_FALSE(none.router.kvmanager);
}

TEST_CASE("a duplicate engine and an unknown metric meaning are mistakes") {
  node_settings read;
  const auto lines = mistakes_of(
      "agent:\n"
      "  engines:\n"
      "    - {instance: e0, url: 'http://127.0.0.1:8001'}\n"
      "    - {instance: e0, url: 'http://127.0.0.1:8002'}\n"
      "  metrics:\n"
      "    - {metric: x, meaning: happiness}\n",
      read);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("node.yaml:4:"));
  CHECK(lines[1].starts_with("node.yaml:6:"));
  CHECK(lines[1].find("happiness") != std::string::npos);
}

TEST_CASE("the strategy in the short spellings of v25.09") {
  for (const auto& [word, strategy] : std::initializer_list<std::pair<std::string, std::string>>{
           {"kv-aware", "kv-aware"}, {"round-robin", "round-robin"}, {"round-robin polling", "round-robin"}}) {
    CAPTURE(word);
    node_settings read;
    CHECK(mistakes_of("router:\n  strategy: " + word + "\n", read).empty());
    CHECK(read.router.policy.strategy == strategy);
  }
  node_settings read;
  CHECK(mistakes_of("router:\n  strategy: kv-aware\n  policy: {strategy: random}\n", read) ==
        std::vector<std::string>{"node.yaml:2:13: router.strategy: given twice: here and by `policy`"});
}

TEST_CASE("a policy may name a file of EndpointPickerConfig, beside the file that names it") {
  char pattern[] = "/tmp/infernex-settings-XXXXXX";
  const std::string folder = ::mkdtemp(pattern);
  const auto write = [&folder](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  };
  const auto picker = write("picker.yaml",
                            "apiVersion: llm-d.ai/v1\n"
                            "kind: EndpointPickerConfig\n"
                            "parser: {}\n"
                            "plugins:\n"
                            "- type: random-picker\n"
                            "schedulingProfiles:\n"
                            "- plugins: [{pluginRef: random-picker}]\n");
  const auto node = write("node.yaml", "router: {policy: {config: picker.yaml, runners_up: 1}}\n");
  node_settings good;
  CHECK(nodes::load_settings(node, good));
  REQUIRE(good.router.policy.config);
  CHECK(good.router.policy.config->name == "picker.yaml");
  CHECK(good.router.policy.runners_up == 1);
  REQUIRE(good.router.policy.source);
  CHECK(good.router.policy.source->file == picker);
  CHECK(good.router.policy.source->stamp == infernex::config::stamp_of(picker));
  CHECK(good.router.policy.source->remarks.size() == 1);
  CHECK_FALSE(good.gateway.policy.config);

  write("wrong.yaml", "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: []\n");
  auto file = config::document::parse(
      "gateway:\n"
      "  policy:\n"
      "    config: wrong.yaml\n"
      "    weight_waiting: 2\n",
      folder + "/node.yaml");
  node_settings wrong;
  nodes::read_settings(file, wrong);
  std::vector<std::string> lines;
  for (const auto& one : file.problems()) lines.push_back(config::render(one));
  CHECK(lines == std::vector<std::string>{
                     node + ":4:21: gateway.policy.weight_waiting: without effect: `config` takes its place",
                     folder + "/wrong.yaml:1:1: schedulingProfiles: at least one profile is needed"});
  std::filesystem::remove_all(folder);
}

TEST_CASE("routing headers are names of headers, and not too many") {
  node_settings read;
  CHECK(mistakes_of("gateway: {routing_headers: [X-Team, x-region]}\n", read).empty());
  CHECK(read.gateway.routing_headers == std::vector<std::string>{"X-Team", "x-region"});
  const auto lines = mistakes_of("gateway: {routing_headers: ['x team']}\n", read);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("gateway.routing_headers: names of headers") != std::string::npos);
  std::string many = "gateway: {routing_headers: [x";
  for (int i = 0; i < 32; ++i) many += ", x" + std::to_string(i);
  CHECK(mistakes_of(many + "]}\n", read).size() == 1);
}
