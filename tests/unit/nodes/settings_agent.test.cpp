#include <doctest/doctest.h>

#include "nodes/settings.hpp"

using namespace infernex;

namespace {

std::vector<std::string> mistakes_of(std::string_view text, engine::settings& into) {
  auto file = config::document::parse(text, "node.yaml");
  nodes::node_settings all;
  nodes::read_settings(file, all);
  into = all.agent;
  std::vector<std::string> lines;
  for (const auto& one : file.problems()) lines.push_back(config::render(one));
  return lines;
}

}  // namespace

TEST_CASE("an entry of several data-parallel ranks is as many engines; the canonical block size is the agent's") {
  engine::settings agent;
  const auto lines = mistakes_of(
      "agent:\n"
      "  canonical_block_size: 64\n"
      "  engines:\n"
      "    - {instance: a, url: 'http://127.0.0.1:8001', kv_events: 'tcp://127.0.0.1:5557', data_parallel_size: 2}\n"
      "    - {instance: b, url: 'http://127.0.0.1:8002', block_size: 32}\n",
      agent);
  CHECK(lines == std::vector<std::string>{});
  CHECK(agent.canonical_block_size == 64U);
  REQUIRE(agent.engines.size() == 3);
  CHECK(agent.engines[1].instance == "a-dp1");
  CHECK(agent.engines[1].kv_events == "tcp://127.0.0.1:5558");
  CHECK(agent.engines[1].data_parallel_rank == 1U);
  CHECK(agent.engines[2].block_size == 32U);
}

TEST_CASE("what is wrong with an entry's ranks is said at its line") {
  engine::settings agent;
  const auto lines = mistakes_of(
      "agent:\n"
      "  engines:\n"
      "    - instance: a\n"
      "      url: http://127.0.0.1:8001\n"
      "      kv_events: tcp://127.0.0.1:5557\n"
      "      kv_replay: tcp://127.0.0.1:5558\n"
      "      data_parallel_size: 4\n"
      "    - instance: b\n"
      "      url: http://127.0.0.1:8002\n"
      "      data_parallel_size: 0\n",
      agent);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("node.yaml:6:"));
  CHECK(lines[0].find("overlap") != std::string::npos);
  CHECK(lines[1].starts_with("node.yaml:10:"));
}

TEST_CASE("an engine's labels, devices and KV transfer are read; openFuyao's labels say what is not said otherwise") {
  engine::settings agent;
  const auto lines = mistakes_of(
      "agent:\n"
      "  engines:\n"
      "    - instance: a\n"
      "      url: http://127.0.0.1:8001\n"
      "      labels: {openfuyao.com/pdRole: prefill, openfuyao.com/pdGroupID: '1'}\n"
      "      devices: [0, 3]\n"
      "      kv_transfer: {protocol: ascend-layerwise, connector: MooncakeLayerwiseConnector, bootstrap_port: 9000}\n"
      "    - {instance: b, url: 'http://127.0.0.1:8002', role: decode, labels: {openfuyao.com/pdRole: prefill}}\n",
      agent);
  CHECK(lines == std::vector<std::string>{});
  REQUIRE(agent.engines.size() == 2);
  const auto& a = agent.engines[0];
  CHECK(a.labels == std::vector<std::pair<std::string, std::string>>{{"openfuyao.com/pdRole", "prefill"},
                                                                     {"openfuyao.com/pdGroupID", "1"}});
  CHECK(a.role == fb::EngineRole::Prefill);
  CHECK(a.pd_group == "1");
  CHECK(a.devices == std::vector<std::uint32_t>{0, 3});
  REQUIRE(a.kv_transfer);
  CHECK(a.kv_transfer->protocol == fb::KvProtocol::AscendLayerwise);
  CHECK(a.kv_transfer->connector == "MooncakeLayerwiseConnector");
  CHECK(a.kv_transfer->engine_id.empty());
  CHECK(a.kv_transfer->bootstrap_port == std::uint16_t{9000});
  CHECK(agent.engines[1].role == fb::EngineRole::Decode);
  CHECK_FALSE(agent.engines[1].kv_transfer);
}

TEST_CASE("mistakes in labels, devices and KV transfer are one line each, at their place") {
  engine::settings agent;
  const auto lines = mistakes_of(
      "agent:\n"
      "  engines:\n"
      "    - instance: a\n"
      "      url: http://127.0.0.1:8001\n"
      "      labels: {group: 1}\n"
      "      devices: [0, x]\n"
      "      kv_transfer: {connector: NixlConnector}\n"
      "    - instance: b\n"
      "      url: http://127.0.0.1:8002\n"
      "      devices: [2, 2]\n"
      "      kv_transfer: {protocol: pigeon, engine_di: x}\n",
      agent);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].starts_with("node.yaml:5:"));
  CHECK(lines[0].find("\"group\": a text") != std::string::npos);
  CHECK(lines[1].starts_with("node.yaml:6:"));
  CHECK(lines[2].starts_with("node.yaml:7:"));
  CHECK(lines[2].find("protocol") != std::string::npos);
  CHECK(lines[3].starts_with("node.yaml:10:"));
  CHECK(lines[4].starts_with("node.yaml:11:"));
  CHECK(lines[5].starts_with("node.yaml:11:"));
  CHECK(lines[5].find("engine_id") != std::string::npos);
}
