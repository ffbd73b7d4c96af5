#include "actors/indexer/tracker.hpp"

#include <doctest/doctest.h>

#include "actors/indexer/index_page.hpp"
#include "messages/view.hpp"

namespace infernex::indexer {
namespace {

using namespace std::chrono_literals;

template <class Object>
view<typename Object::TableType> message(const Object& object) {
  const auto bytes = encode(object);
  return *view<typename Object::TableType>::verify(chunk::copy_of(bytes_of(bytes)));
}

struct setup {
  std::shared_ptr<index_set> indexes;
  tracker of;
  time_point now{std::chrono::hours(1)};
  std::map<std::string, std::uint64_t> sequences;

  explicit setup(index_set::limits bounds = {}, tracker_settings how = {})
      : indexes(std::make_shared<index_set>(bounds)), of(how, indexes) {}

  static std::unique_ptr<fb::OriginT> origin(std::uint64_t sequence) {
    auto o = std::make_unique<fb::OriginT>();
    o->id = "agent";
    o->epoch = 7;
    o->sequence = sequence;
    return o;
  }
  tracker::requests announce(const std::string& model, const std::string& instance, std::uint64_t kv_sequence = 0,
                             const std::vector<std::uint64_t>& mirror = {},
                             fb::EngineState state = fb::EngineState::Ready) {
    fb::EngineAnnounceT m;
    m.origin = origin(++sequences["a" + model + instance]);
    m.model = model;
    m.instance = instance;
    m.state = state;
    m.kv_sequence = kv_sequence;
    m.kv_keys = mirror.size();
    for (const auto k : mirror) m.kv_digest ^= k;
    return of.on_announce(*message(m), now);
  }
  tracker::requests add(const std::string& model, const std::string& instance, std::uint64_t sequence,
                        const std::vector<std::uint64_t>& keys) {
    fb::KvDeltaT m;
    m.origin = origin(sequence);
    m.model = model;
    m.instance = instance;
    m.added = keys;
    m.kv_keys = keys.size();
    for (const auto k : keys) m.kv_digest ^= k;
    return of.on_delta(*message(m), now);
  }
  fb::KvMatchReplyT match(const std::string& model, const std::vector<std::vector<std::uint64_t>>& chains) {
    fb::KvMatchQueryT q;
    q.model = model;
    for (const auto& keys : chains) {
      q.chains.push_back(std::make_unique<fb::KvChainT>());
      q.chains.back()->keys = keys;
    }
    return of.match(*message(q), now);
  }
};

TEST_CASE("so many snapshots at once; the next engine's turn comes when one has ended") {
  tracker_settings how;
  how.sync.max_snapshots = 2;
  setup s({}, how);
  std::size_t asked = 0;
  for (int i = 0; i < 5; ++i) asked += s.announce("m", "e" + std::to_string(i), 3, {1, 2}).size();
  CHECK(asked == 2);
  CHECK(s.of.on_tick(s.now).empty());
  for (int i = 0; i < 5; ++i) {
    const auto instance = "e" + std::to_string(i);
    REQUIRE(s.of.awaits_snapshot("m", instance));
    fb::KvSnapshotChunkT chunk;
    chunk.origin = setup::origin(0);
    chunk.model = "m";
    chunk.instance = instance;
    chunk.as_of = 3;
    chunk.total = 1;
    chunk.keys = {1, 2};
    const auto more = s.of.on_chunk(*message(chunk), s.now);
    CHECK(more.size() == (i < 3 ? 1 : 0));
  }
  for (const auto& source : s.of.status(s.now)) CHECK(source.exact);
}

TEST_CASE("a match reply has one answer a chain, and says how far each engine is known") {
  setup s;
  s.add("m", "e0", 1, {1, 2, 3});
  s.announce("m", "e1", 4);
  const auto reply = s.match("m", {{1, 2, 9}, {}, {8}, {3}});
  CHECK(reply.model == "m");
  REQUIRE(reply.matches.size() == 4);
  REQUIRE(reply.matches[0]->overlaps.size() == 1);
  CHECK(reply.matches[0]->overlaps[0]->instance == "e0");
  CHECK(reply.matches[0]->overlaps[0]->blocks == 2);
  CHECK(reply.matches[1]->overlaps.empty());
  CHECK(reply.matches[2]->overlaps.empty());
  CHECK(reply.matches[3]->overlaps[0]->blocks == 1);
  REQUIRE(reply.coverage.size() == 2);
  CHECK(reply.coverage[0]->instance == "e0");
  CHECK(reply.coverage[0]->exact);
  CHECK(reply.coverage[0]->sequence == 1);
  CHECK(reply.coverage[0]->keys == 3);
  CHECK_FALSE(reply.coverage[1]->exact);
  s.now += 250ms;
  CHECK(s.match("m", {}).coverage[0]->age_ms == 250);
  const auto unknown = s.match("other", {{1}, {2}});
  CHECK(unknown.matches.size() == 2);
  CHECK(unknown.coverage.empty());
}

TEST_CASE("an engine that is starting holds nothing, whatever its agent still remembers") {
  setup s;
  s.announce("m", "e");
  s.add("m", "e", 1, {1, 2});
  const auto held = [&s] { return s.indexes->find("m")->keys_of("e"); };
  CHECK(held() == 2);
  CHECK(s.announce("m", "e", 1, {1, 2}, fb::EngineState::Down).empty());
  CHECK(held() == 0);
  CHECK(s.announce("m", "e", 1, {1, 2}, fb::EngineState::Starting).empty());
  CHECK(held() == 0);
}

TEST_CASE("a reply is bounded: over it, each chain keeps its longest overlaps") {
  setup s({}, {.sync = {}, .max_name_bytes = 512, .max_overlaps = 4});
  for (std::uint64_t i = 1; i <= 6; ++i) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t k = 1; k <= i; ++k) keys.push_back(k);
    s.add("m", "e" + std::to_string(i), 1, keys);
  }
  const std::vector<std::uint64_t> chain{1, 2, 3, 4, 5, 6};
  const auto reply = s.match("m", {chain, chain});
  for (const auto& match : reply.matches) {
    REQUIRE(match->overlaps.size() == 2);
    CHECK(match->overlaps[0]->blocks == 6);
    CHECK(match->overlaps[1]->blocks == 5);
  }
}

TEST_CASE("models are apart; an agent that says nothing more is forgotten, and its model with the last one") {
  setup s;
  s.add("m1", "e0", 1, {1});
  s.add("m2", "e0", 1, {2});
  CHECK(s.match("m1", {{2}}).matches[0]->overlaps.empty());
  s.now += 30s;
  s.announce("m2", "e0", 1, {2});
  s.now += 30s;
  s.of.on_tick(s.now);
  CHECK(s.of.forgotten() == 1);
  CHECK_FALSE(s.indexes->find("m1"));
  CHECK(s.indexes->find("m2"));
  CHECK(s.match("m2", {{2}}).matches[0]->overlaps.size() == 1);
}

TEST_CASE("while the bus is down nothing is forgotten or asked; after it, it is") {
  setup s;
  REQUIRE(s.announce("m", "e0", 3).size() == 1);
  CHECK(s.of.awaits_snapshot("m", "e0"));
  s.of.on_bus(false, s.now);
  s.now += 300s;
  CHECK(s.of.on_tick(s.now).empty());
  const auto asked = s.of.on_bus(true, s.now);
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].model == "m");
  CHECK(asked[0].instance == "e0");
  CHECK(s.of.forgotten() == 0);
  CHECK(s.of.on_bus(true, s.now).empty());
}

TEST_CASE("bounds: models, instances, names; a message without origin is nobody's") {
  setup s({.max_models = 1, .max_bytes = 1 << 20, .per_model = {.max_instances = 2, .max_bytes = 1 << 20}});
  s.announce("m", "e0");
  s.announce("m", "e1");
  CHECK(s.of.refused() == 0);
  s.announce("m", "e2");
  s.announce("m2", "e0");
  s.announce("m", "");
  s.announce("m", std::string(600, 'x'));
  CHECK(s.of.refused() == 4);
  fb::KvDeltaT nobody;
  nobody.model = "m";
  nobody.instance = "e0";
  nobody.added = {1};
  s.of.on_delta(*message(nobody), s.now);
  CHECK(s.match("m", {{1}}).matches[0]->overlaps.empty());
  CHECK(s.of.status(s.now).size() == 2);
}

TEST_CASE("the page shows what is known, model by model") {
  setup s;
  s.add("m1", "e0", 1, {0xab});
  s.announce("m1", "e1", 5);
  s.add("m2", "e0", 1, {1, 2});
  s.now += 40ms;
  auto page = make_page(s.of, *s.indexes, s.now);
  auto engines = std::make_shared<engine_list>();
  engines->models["m1"].engines.emplace_back().instance = "e0";
  engines->models["m1"].engines[0].state = fb::EngineState::Ready;
  engines->models["m1"].engines[0].kv_health = fb::KvHealth::Live;
  page.engines = std::move(engines);
  REQUIRE(page.models.size() == 2);
  CHECK(page.models[1].distinct_keys == 2);
  const auto text = to_json(page, s.now + 2ms);
  CHECK(
      text.find(
          R"({"instance":"e0","keys":1,"device_keys":1,"host_keys":0,"disk_keys":0,"digest":"00000000000000ab","exact":true,"sequence":1,"agent_epoch":7,)"
          R"("engine_epoch":null,"age_ms":42,"state":"exact",)") != std::string::npos);
  CHECK(
      text.find(
          R"({"instance":"e1","keys":0,"device_keys":0,"host_keys":0,"disk_keys":0,"digest":"0000000000000000","exact":false,"sequence":0,)") !=
      std::string::npos);
  CHECK(to_json({}, s.now) == R"({"models":[]})");
}

}  // namespace
}  // namespace infernex::indexer
