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
