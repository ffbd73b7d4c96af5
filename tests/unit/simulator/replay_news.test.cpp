#include "actors/simulator/replay_news.hpp"

#include <doctest/doctest.h>

using namespace infernex::simulator;

namespace {

struct listener : replay_policy {
  explicit listener(std::vector<std::string>& said) : said(said) {}
  void engine_up(std::uint32_t engine, double) override { said.push_back("up " + std::to_string(engine)); }
  void engine_down(std::uint32_t engine, double) override { said.push_back("down " + std::to_string(engine)); }
  void load_reported(std::uint32_t, const engine_load&, double) override { said.push_back("load"); }
  std::optional<replay_choice> place(const replay_request&, double) override { return std::nullopt; }
  void placed_elsewhere(const replay_progress& of, double now_ms) override { say("placed", of, now_ms); }
  void prefilled(const replay_progress& of, double now_ms) override { say("prefilled", of, now_ms); }
  void ended(const replay_progress& of, double now_ms) override { say("ended", of, now_ms); }
  void say(const std::string& what, const replay_progress& of, double now_ms) {
    said.push_back(what + ' ' + std::to_string(of.id) + " at " + std::to_string(static_cast<int>(now_ms)));
  }
  std::vector<std::string>& said;
};

using words = std::vector<std::string>;
using kind = cache_change::kind;

}  // namespace

TEST_CASE("blocks are in the index when their events have arrived, as a set, and go with their engine") {
  replay_news news({.kv_event_ms = 2}, 2, 1);
  words said;
  std::vector<std::unique_ptr<replay_policy>> routers;
  routers.push_back(std::make_unique<listener>(said));
  news.tell_to(routers);
  news.engine_up(0, 0);
  news.engine_up(1, 0);
  infernex::indexer::kv_index::reader index(news.index());
  const std::vector<block_name> chain{7, 8, 9};
  const auto blocks = [&](double at_ms) {
    news.deliver(at_ms);
    const auto found = index.lookup(chain);
    return found.empty() ? 0 : found[0].blocks;
  };
  news.blocks_changed(1, std::vector<cache_change>{{kind::stored, true, 0, 7}, {kind::stored, true, 1, 8}}, 10);
  news.blocks_changed(1, std::vector<cache_change>{{kind::stored, false, 1, 8}, {kind::removed, false, 0, 8}}, 11);
  news.blocks_changed(1, std::vector<cache_change>{{kind::removed, true, 0, 8}}, 20);
  CHECK(blocks(11.9) == 0);
  CHECK(blocks(12) == 2);
  CHECK(index.lookup(chain)[0].instance == instance_name(1));
  CHECK(blocks(21.9) == 2);  // one copy has gone, the other stays
  CHECK(blocks(22) == 1);
  news.blocks_changed(1, std::vector<cache_change>{{kind::stored, true, 1, 8}}, 30);
  news.engine_down(1, 31);
  CHECK(blocks(100) == 0);
}

TEST_CASE("each gateway tells at its own moments, replicas hear it in the order of time") {
  replay_news news({.life_interval_ms = 20}, 1, 2);  // told at 0, 20, ... and at 10, 30, ...
  words first;
  words second;
  std::vector<std::unique_ptr<replay_policy>> routers;
  routers.push_back(std::make_unique<listener>(first));
  routers.push_back(std::make_unique<listener>(second));
  news.tell_to(routers);
  news.progress(replay_news::step::placed, {.id = 1}, 0, 0, 3);
  news.progress(replay_news::step::placed, {.id = 2}, 1, 1, 4);
  news.progress(replay_news::step::prefilled, {.id = 2}, 1, 1, 11);
  news.deliver(9.9);
  CHECK(first.empty());
  CHECK(second.empty());
  news.progress(replay_news::step::ended, {.id = 2}, 1, 1, 31);
  news.deliver(40);
  CHECK(first == words{"placed 2 at 10", "prefilled 2 at 30"});
  CHECK(second == words{"placed 1 at 20", "prefilled 2 at 30"});
  news.deliver(50);
  CHECK(first.back() == "ended 2 at 50");
}

TEST_CASE("without an interval gateways tell at once") {
  replay_news news({.life_interval_ms = 0}, 1, 1);
  words said;
  std::vector<std::unique_ptr<replay_policy>> routers;
  routers.push_back(std::make_unique<listener>(said));
  news.tell_to(routers);
  news.progress(replay_news::step::prefilled, {.id = 5}, 0, 0, 7);
  news.deliver(7);
  CHECK(said == words{"prefilled 5 at 7"});
}
