#include "actors/indexer/engine_directory.hpp"

#include <doctest/doctest.h>

#include "actors/indexer/index_name.hpp"
#include "messages/view.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;
const engine_directory::time_point start{};

struct said {
  std::string model = "m";
  std::string instance = "e0";
  std::uint64_t epoch = 1;
  std::uint64_t sequence = 1;
  fb::EngineState state = fb::EngineState::Ready;
  std::optional<std::uint32_t> block_size = 16;
  std::vector<std::string> adapters = {};
};

void announce(engine_directory& to, const said& what, engine_directory::time_point at = start) {
  fb::EngineAnnounceT m;
  m.origin = std::make_unique<fb::OriginT>();
  m.origin->epoch = what.epoch;
  m.origin->sequence = what.sequence;
  m.model = what.model;
  m.instance = what.instance;
  m.url = "http://h:1";
  m.state = what.state;
  if (what.block_size) m.block_size = *what.block_size;
  m.adapters = what.adapters;
  const auto bytes = encode(m);
  to.on_announce(*flatbuffers::GetRoot<fb::EngineAnnounce>(bytes.data()), at);
}

TEST_CASE("the newest announcement of an engine counts, by epoch and sequence") {
  engine_directory engines({});
  announce(engines, {.sequence = 5, .state = fb::EngineState::Ready});
  announce(engines, {.sequence = 4, .state = fb::EngineState::Down});
  CHECK(engines.find("m", "e0")->state == fb::EngineState::Ready);
  announce(engines, {.epoch = 2, .sequence = 1, .state = fb::EngineState::Down});
  CHECK(engines.find("m", "e0")->state == fb::EngineState::Down);
  announce(engines, {.epoch = 1, .sequence = 9, .state = fb::EngineState::Ready});
  CHECK(engines.find("m", "e0")->state == fb::EngineState::Down);
  CHECK(engines.find("m", "e1") == nullptr);
  CHECK(engines.find("n", "e0") == nullptr);
}

TEST_CASE("the list is made anew only when something has changed") {
  engine_directory engines({});
  announce(engines, {.sequence = 1});
  const auto first = engines.list();
  announce(engines, {.sequence = 2});
  CHECK(engines.list() == first);
  announce(engines, {.sequence = 3, .state = fb::EngineState::Draining});
  const auto second = engines.list();
  CHECK(second != first);
  CHECK(first->find("m")->find("e0")->state == fb::EngineState::Ready);
  CHECK(second->find("m")->find("e0")->state == fb::EngineState::Draining);
  CHECK(second->find("m")->find("e") == nullptr);
  CHECK(second->find("x") == nullptr);
}

TEST_CASE("a silent engine is forgotten, and its model with the last one") {
  engine_directory engines({.forget = 60s});
  announce(engines, {.instance = "e0"}, start);
  announce(engines, {.instance = "e1"}, start + 10s);
  engines.on_tick(start + 60s);
  CHECK(engines.find("m", "e0") == nullptr);
  CHECK(engines.find("m", "e1") != nullptr);
  engines.on_tick(start + 70s);
  CHECK(engines.list()->models.empty());
}

TEST_CASE("nobody is forgotten while the bus is down, nor at once when it is back") {
  engine_directory engines({.forget = 60s});
  announce(engines, {}, start);
  engines.on_bus(false, start + 1s);
  engines.on_tick(start + 100s);
  CHECK(engines.find("m", "e0") != nullptr);
  engines.on_bus(true, start + 100s);
  engines.on_tick(start + 159s);
  CHECK(engines.find("m", "e0") != nullptr);
  engines.on_tick(start + 160s);
  CHECK(engines.find("m", "e0") == nullptr);
}

TEST_CASE("engines over the bound are refused and counted; a forgotten one makes room") {
  engine_directory engines({.max_engines = 1, .max_name_bytes = 8, .forget = 60s});
  announce(engines, {.instance = "e0"});
  announce(engines, {.instance = "e1"});
  announce(engines, {.instance = "a name too long"});
  CHECK(engines.refused() == 2);
  CHECK(engines.find("m", "e1") == nullptr);
  engines.on_tick(start + 60s);
  announce(engines, {.instance = "e1", .sequence = 2}, start + 60s);
  CHECK(engines.find("m", "e1") != nullptr);
}

TEST_CASE("the block size is that of a ready engine before others; adapters lead to their model") {
  engine_directory engines({});
  announce(engines, {.instance = "e0", .block_size = std::nullopt});
  CHECK_FALSE(engines.list()->find("m")->block_size());
  announce(engines, {.instance = "e1", .state = fb::EngineState::Down, .block_size = 32});
  CHECK(engines.list()->find("m")->block_size() == 32);
  announce(engines, {.instance = "e2", .block_size = 16, .adapters = {"a"}});
  CHECK(engines.list()->find("m")->block_size() == 16);
  CHECK(engines.list()->model_of_adapter("a") == "m");
  CHECK(engines.list()->model_of_adapter("b").empty());
}

TEST_CASE("a tenant's model is a name of its own, and no two pairs share one") {
  CHECK(index_name("Qwen/Qwen3", "") == "Qwen/Qwen3");
  CHECK(index_name("Qwen/Qwen3", "default") == "Qwen/Qwen3");
  CHECK(index_name("m", "acme") == "m@tenant:acme");
  CHECK(split_index_name("m@tenant:acme") == tenant_model{"m", "acme"});
  CHECK(split_index_name("m@home") == tenant_model{"m@home", "default"});
  CHECK_FALSE(index_name("m@tenant:acme", ""));
  CHECK_FALSE(index_name("m", "a@tenant:b"));
  CHECK_FALSE(index_name("", "acme"));
  CHECK_FALSE(index_name("m\n", ""));
  CHECK_FALSE(index_name(std::string(401, 'm'), ""));
}

}  // namespace
}  // namespace infernex::indexer
