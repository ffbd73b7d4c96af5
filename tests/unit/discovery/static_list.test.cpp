#include "actors/discovery/static_list.hpp"

#include <doctest/doctest.h>

#include "actors/discovery/platform_labels.hpp"

namespace {

using infernex::errc;
using infernex::discovery::checked;
using infernex::discovery::engine_descriptor;
using infernex::discovery::expand_ranks;
using infernex::discovery::find_mistakes;
using infernex::discovery::kv_transfer;
using infernex::discovery::parse_descriptor;
using infernex::discovery::read_platform_labels;
using infernex::discovery::render;
using infernex::fb::EngineRole;
using infernex::fb::KvProtocol;

engine_descriptor good(std::string instance) {
  engine_descriptor engine;
  engine.instance = std::move(instance);
  engine.url = "http://127.0.0.1:8100";
  engine.kv_events = "tcp://127.0.0.1:5557";
  engine.kv_replay = "tcp://127.0.0.1:5558";
  return engine;
}

TEST_CASE("a list without mistakes comes back as it was") {
  auto second = good("e1");
  second.url = "http://[::1]:8101/base";
  second.kv_events = "ipc:///run/kv.sock";
  second.kv_replay.clear();
  second.block_size = 128;
  const std::vector list{good("e0"), second};
  const auto result = checked(list);
  REQUIRE(result.ok());
  CHECK(*result == list);
}

TEST_CASE("every mistake is found, each with its entry and key") {
  auto unnamed = good("");
  auto twice = good("e0");
  auto wrong = good("e2");
  wrong.url = "localhost:8000";
  wrong.kv_events = "tcp://*:5557";
  wrong.kv_replay = "tcp://host:0";
  wrong.block_size = 0;
  const std::vector list{good("e0"), unnamed, twice, wrong};
  const auto mistakes = find_mistakes(list);
  REQUIRE(mistakes.size() == 6);
  CHECK(render(mistakes[0]) == "engines[1].instance: a name is required");
  CHECK(render(mistakes[1]) == "engines[2].instance: \"e0\" is already the name of engines[0]");
  CHECK(render(mistakes[2]) == "engines[3].url: an http:// URL with host and port, not \"localhost:8000\"");
  CHECK(mistakes[3].key == "kv_events");
  CHECK(mistakes[4].key == "kv_replay");
  CHECK(mistakes[5].key == "block_size");
  const auto result = checked(list);
  REQUIRE_FALSE(result.ok());
  CHECK(result.failure().code == errc::invalid_config);
}

TEST_CASE("URLs an agent could not use are refused") {
  for (const auto* url : {"", "http://", "http://host", "http://:80", "http://host:0", "http://host:70000",
                          "http://host:80x", "https://host:443", "http://a b:80", "http://user@host:80"}) {
    CAPTURE(url);
    auto engine = good("e");
    engine.url = url;
    const auto mistakes = find_mistakes(std::vector{engine});
    REQUIRE(mistakes.size() == 1);
    CHECK(mistakes[0].key == "url");
  }
}

TEST_CASE("a replay endpoint alone is a mistake, names are bounded") {
  auto alone = good("e");
  alone.kv_events.clear();
  CHECK(find_mistakes(std::vector{alone}).size() == 1);
  CHECK(find_mistakes(std::vector{good(std::string(201, 'x'))}).size() == 1);
  CHECK(find_mistakes(std::vector{good("line\nbreak")}).size() == 1);
}

TEST_CASE("an engine of several data-parallel ranks becomes as many engines, with endpoints of their own") {
  auto several = good("big");
  several.kv_replay = "tcp://127.0.0.1:6557";
  several.data_parallel_size = 3;
  auto local = good("local");
  local.kv_events = "ipc:///run/kv.sock";
  local.kv_replay.clear();
  local.data_parallel_size = 2;
  const std::vector list{good("e0"), several, local};
  CHECK(find_mistakes(list).empty());
  const auto expanded = expand_ranks(list);
  REQUIRE(expanded.size() == 6);
  CHECK(expanded[0] == list[0]);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto& one = expanded[1 + rank];
    CHECK(one.instance == "big-dp" + std::to_string(rank));
    CHECK(one.url == several.url);
    CHECK(one.kv_events == "tcp://127.0.0.1:" + std::to_string(5557 + rank));
    CHECK(one.kv_replay == "tcp://127.0.0.1:" + std::to_string(6557 + rank));
    CHECK(one.data_parallel_rank == rank);
    CHECK(one.data_parallel_size == 1);
  }
  CHECK(expanded[4].kv_events == "ipc:///run/kv.sock");
  CHECK(expanded[5].kv_events == "ipc:///run/kv.sock_dp1");
  CHECK(expanded[5].kv_replay.empty());
  CHECK(find_mistakes(expanded).empty());
  CHECK(expand_ranks(expanded) == expanded);
}

TEST_CASE("ranks: what only they make wrong is found at the entry that has them") {
  auto overlapping = good("a");  // 5557 and 5558: rank 1's events are where rank 0 replays
  overlapping.data_parallel_size = 2;
  auto too_high = good("b");
  too_high.kv_replay = "tcp://127.0.0.1:65535";
  too_high.data_parallel_size = 2;
  auto none = good("c");
  none.data_parallel_size = 0;
  auto named_alike = good("d-dp1");
  auto ranks = good("d");
  ranks.kv_replay.clear();
  ranks.data_parallel_size = 2;
  const auto mistakes = find_mistakes(std::vector{overlapping, too_high, none, named_alike, ranks});
  REQUIRE(mistakes.size() == 4);
  CHECK(render(mistakes[0]) ==
        "engines[0].kv_replay: the ports of 2 ranks overlap those of kv_events: a distance of at least 2 is needed");
  CHECK(render(mistakes[1]) == "engines[1].kv_replay: the last of 2 ranks would have port 65536, above 65535");
  CHECK(render(mistakes[2]) == "engines[2].data_parallel_size: between 1 and 1024");
  CHECK(render(mistakes[3]) == "engines[4].instance: \"d-dp1\" is already the name of engines[3]");

  auto many = good("m");
  many.kv_replay.clear();
  many.data_parallel_size = 1000;
  std::vector<engine_descriptor> crowd(5, many);
  for (std::size_t i = 0; i < crowd.size(); ++i) crowd[i].instance += std::to_string(i);
  const auto crowded = find_mistakes(crowd);
  REQUIRE(crowded.size() == 1);
  CHECK(crowded[0].index == 4);
}

TEST_CASE("an engine in one argument: up to four fields") {
  const auto full = parse_descriptor("e,http://h:1,tcp://h:2,tcp://h:3");
  REQUIRE(full.ok());
  CHECK(full->instance == "e");
  CHECK(full->url == "http://h:1");
  CHECK(full->kv_events == "tcp://h:2");
  CHECK(full->kv_replay == "tcp://h:3");
  const auto brief = parse_descriptor("e,http://h:1");
  REQUIRE(brief.ok());
  CHECK(brief->kv_events.empty());
  REQUIRE(parse_descriptor("").ok());
  const auto more = parse_descriptor("e,http://h:1,tcp://h:2,tcp://h:3,prefill");
  REQUIRE_FALSE(more.ok());
  CHECK(more.failure().detail.find("\"prefill\"") != std::string::npos);
  CHECK_FALSE(parse_descriptor("e,,,,").ok());
}

TEST_CASE("an engine in one argument: its part in a PD group") {
  const auto e = parse_descriptor(
      "p,http://h:1,tcp://h:2,tcp://h:3,role=prefill,pd_group=g,kv_protocol=mooncake,"
      "bootstrap_port=8998,node=n1");
  REQUIRE(e.ok());
  CHECK(e->kv_replay == "tcp://h:3");
  CHECK(e->role == EngineRole::Prefill);
  CHECK(e->pd_group == "g");
  CHECK(e->node == "n1");
  REQUIRE(e->kv_transfer);
  CHECK(e->kv_transfer->protocol == KvProtocol::Mooncake);
  CHECK(e->kv_transfer->bootstrap_port == 8998);
  const auto without_events = parse_descriptor("d,http://h:1,role=decode");
  REQUIRE(without_events.ok());
  CHECK(without_events->kv_events.empty());
  CHECK(without_events->role == EngineRole::Decode);
  for (const auto* wrong : {"e,http://h:1,role=both", "e,http://h:1,kv_protocol=tcp", "e,http://h:1,bootstrap_port=0",
                            "e,http://h:1,colour=red"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_descriptor(wrong).ok());
  }
}

TEST_CASE("labels, devices and kv_transfer: bounds, and what contradicts itself") {
  auto right = good("e0");
  right.labels = {{"zone", "a"}, {"empty", ""}};
  right.devices = {1, 0, 1023};
  right.kv_transfer = kv_transfer{KvProtocol::Mooncake, "MooncakeConnector", "id", std::uint16_t{8998}};
  CHECK(find_mistakes(std::vector{right}).empty());

  const auto mistake_of = [](const auto& change) {
    auto engine = good("e0");
    change(engine);
    const auto found = find_mistakes(std::vector{engine});
    return found.size() == 1 ? render(found.front()) : std::to_string(found.size()) + " mistakes";
  };
  CHECK(mistake_of([](auto& e) {
          e.labels = {{"zone", "a"}, {"zone", "b"}};
        }) == "engines[0].labels: \"zone\" is there twice");
  CHECK(mistake_of([](auto& e) {
          for (int i = 0; i < 65; ++i) e.labels.emplace_back(std::to_string(i), "");
        }) == "engines[0].labels: at most 64 of them");
  CHECK(mistake_of([](auto& e) { e.labels = {{"", "a"}}; }) == "engines[0].labels: a label without a name");
  CHECK(mistake_of([](auto& e) {
          e.labels = {{"long", std::string(257, 'x')}};
        }) == "engines[0].labels: \"long\": name and value of at most 256 bytes, without control characters");
  CHECK(mistake_of([](auto& e) { e.devices = {1, 2, 1}; }) == "engines[0].devices: each of them once");
  CHECK(mistake_of([](auto& e) { e.devices = {1024}; }) == "engines[0].devices: indices up to 1023");
  CHECK(mistake_of([](auto& e) { e.kv_transfer.emplace(); }) ==
        "engines[0].kv_transfer: a protocol: nixl, mooncake, ascend, ascend-layerwise or sglang");
  CHECK(mistake_of([](auto& e) {
          e.kv_transfer = kv_transfer{KvProtocol::Sglang, "", "", std::uint16_t{0}};
        }) == "engines[0].kv_transfer: a bootstrap_port between 1 and 65535");
}

TEST_CASE("openFuyao's labels say role and group where nothing else does") {
  const auto read = [](engine_descriptor engine, std::string role, bool role_known = false) {
    engine.labels = {{"openfuyao.com/pdGroupID", "g7"}, {"openfuyao.com/pdRole", std::move(role)}};
    read_platform_labels(engine, role_known);
    return engine;
  };
  CHECK(read(good("e"), "prefill").role == EngineRole::Prefill);
  CHECK(read(good("e"), "prefill").pd_group == "g7");
  CHECK(read(good("e"), "decode").role == EngineRole::Decode);
  for (const auto* word : {"aggregate", "aggregated", "leader", "other"})
    CHECK(read(good("e"), word).role == EngineRole::Aggregated);
  CHECK(read(good("e"), "prefill", true).role == EngineRole::Aggregated);
  auto grouped = good("e");
  grouped.pd_group = "mine";
  CHECK(read(grouped, "decode").pd_group == "mine");
}

}  // namespace
