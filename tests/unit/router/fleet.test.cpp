#include "actors/router/fleet.hpp"

#include <map>

#include <doctest/doctest.h>

#include "messages/view.hpp"

namespace infernex::router {
namespace {

using namespace std::chrono_literals;
using state = fb::EngineState;

template <class Object>
view<typename Object::TableType> message(const Object& object) {
  const auto bytes = encode(object);
  return *view<typename Object::TableType>::verify(chunk::copy_of(bytes_of(bytes)));
}

/// A fleet with agents and gateways that speak to it, and a clock of its own.
struct setup {
  fleet of;
  clock_point now{1'000s};
  std::map<std::string, std::uint64_t> sequences;
  std::uint64_t epoch = 100;

  explicit setup(fleet_settings settings = {}) : of(settings) {}

  std::unique_ptr<fb::OriginT> origin(const std::string& source, const std::string& subject) {
    auto o = std::make_unique<fb::OriginT>();
    o->id = source;
    o->epoch = epoch;
    o->sequence = ++sequences[source + subject];
    return o;
  }
  fb::EngineAnnounceT announcement(const std::string& instance, state s, const std::string& reason = {}) {
    fb::EngineAnnounceT m;
    m.origin = origin("agent/" + instance, "announce");
    m.model = "m";
    m.instance = instance;
    m.url = "http://" + instance;
    m.state = s;
    m.reason = reason;
    m.block_size = 16;
    return m;
  }
  std::vector<fleet_event> announce(const std::string& instance, state s, const std::string& reason = {}) {
    return hear(announcement(instance, s, reason));
  }
  std::vector<fleet_event> hear(const fb::EngineAnnounceT& m) { return of.on_announce(*message(m), now); }
  void load(const std::string& instance, std::uint32_t waiting) {
    fb::EngineLoadT m;
    m.origin = origin("agent/" + instance, "load");
    m.model = "m";
    m.instance = instance;
    m.waiting = waiting;
    of.on_load(*message(m), now);
  }
  fb::RequestLifeT life(const std::string& gateway, const std::map<std::string, std::uint32_t>& requests) {
    fb::RequestLifeT m;
    m.origin = origin(gateway, "life");
    m.model = "m";
    for (const auto& [instance, count] : requests) {
      auto& one = *m.in_flight.emplace_back(std::make_unique<fb::InFlightT>());
      one.instance = instance;
      one.requests = count;
      one.prefill_tokens = count * 10;
    }
    return m;
  }
  void hear(const fb::RequestLifeT& m, std::string_view own = {}) { of.on_life(*message(m), now, own); }

  std::shared_ptr<const topology> seen() {
    published<topology>::reader reader(of.topologies());
    return reader.shared();
  }
  const endpoint* find(const std::string& instance) {
    const auto* model = (kept = seen())->find("m");
    if (!model) return nullptr;
    for (const auto& e : model->endpoints)
      if (e.instance == instance) return &e;
    return nullptr;
  }
  state state_of(const std::string& instance) {
    const auto* e = find(instance);
    REQUIRE(e);
    return e->state;
  }
  load_reading read(const std::string& instance) {
    const auto* e = find(instance);
    REQUIRE(e);
    return of.board().read(e->slot, now);
  }
  std::shared_ptr<const topology> kept;
};

TEST_CASE("announcements make the topology, sorted by name; nothing new means no new snapshot") {
  setup s;
  auto events = s.announce("b", state::Starting, "loading");
  REQUIRE(events.size() == 1);
  CHECK(events[0].from == state::Unknown);
  CHECK(events[0].to == state::Starting);
  CHECK(events[0].reason == "loading");
  CHECK(s.announce("a", state::Ready).size() == 1);
  const auto version = s.seen()->version;
  CHECK(s.announce("a", state::Ready).empty());
  CHECK(s.seen()->version == version);
  const auto* model = s.seen()->find("m");
  REQUIRE(model);
  REQUIRE(model->endpoints.size() == 2);
  CHECK(model->endpoints[0].instance == "a");
  CHECK(model->endpoints[0].url == "http://a");
  CHECK(model->block_size() == 16);
  events = s.announce("b", state::Ready);
  REQUIRE(events.size() == 1);
  CHECK(events[0].from == state::Starting);
  CHECK(s.seen()->version == version + 1);
}

TEST_CASE("an engine announced as nothing in particular is listed all the same") {
  setup s;
  fb::EngineAnnounceT bare;
  bare.origin = s.origin("agent/x", "announce");
  bare.model = "m";
  bare.instance = "x";
  CHECK(s.hear(bare).empty());
  CHECK(s.state_of("x") == state::Unknown);
}

TEST_CASE("labels are sorted, a key counts once, and there is a bound to their number and length") {
  setup s;
  auto m = s.announcement("a", state::Ready);
  const auto add = [&](const std::string& key, const std::string& value) {
    auto label = std::make_unique<fb::LabelT>();
    label->key = key;
    label->value = value;
    m.labels.push_back(std::move(label));
  };
  add("zone", "z1");
  add("rack", "r1");
  add("zone", "z2");
  add("", "nameless");
  add("long", std::string(513, 'x'));
  s.hear(m);
  const auto& e = s.seen()->find("m")->endpoints.front();
  using pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(e.labels == pairs{{"rack", "r1"}, {"zone", "z1"}});
  CHECK(e.label("zone") == "z1");
  CHECK(e.label("region").empty());
  CHECK(e.label("aaa").empty());
  m = s.announcement("a", state::Ready);
  for (int i = 0; i < 100; ++i) add("k" + std::to_string(i), "v");
  s.hear(m);
  CHECK(s.seen()->find("m")->endpoints.front().labels.size() == 64);
}

TEST_CASE("old and repeated announcements are ignored; a larger epoch starts anew") {
  setup s;
  const auto first = s.announcement("a", state::Ready);
  s.hear(first);
  const auto second = s.announcement("a", state::Draining);
  s.hear(second);
  CHECK(s.hear(first).empty());
  CHECK(s.state_of("a") == state::Draining);
  s.epoch = 200;
  s.sequences.clear();
  s.announce("a", state::Ready);
  CHECK(s.state_of("a") == state::Ready);
  CHECK(s.hear(s.announcement("a", state::Ready)).empty());
  s.epoch = 150;
  auto late = s.announcement("a", state::Down);
  late.origin->sequence = 1'000;
  CHECK(s.hear(late).empty());
  CHECK(s.state_of("a") == state::Ready);
}

TEST_CASE("silence: down after 6 s with a reason, forgotten after 60 s, its slot free again") {
  setup s({.max_engines = 1});
  s.announce("a", state::Ready);
  s.now += 5'999ms;
  CHECK(s.of.on_tick(s.now).empty());
  s.now += 1ms;
  auto events = s.of.on_tick(s.now);
  REQUIRE(events.size() == 1);
  CHECK(events[0].to == state::Down);
  CHECK(events[0].reason == "its agent has been silent for 6 s");
  CHECK(s.state_of("a") == state::Down);
  CHECK(s.of.on_tick(s.now + 1s).empty());

  SUBCASE("it speaks again") {
    s.now += 3s;
    events = s.announce("a", state::Ready);
    REQUIRE(events.size() == 1);
    CHECK(events[0].from == state::Down);
    CHECK(s.state_of("a") == state::Ready);
  }
  SUBCASE("it does not") {
    s.announce("b", state::Ready);
    CHECK(s.of.refused() == 1);
    s.now += 54s;
    events = s.of.on_tick(s.now);
    REQUIRE(events.size() == 1);
    CHECK(events[0].to == state::Unknown);
    CHECK(s.seen()->find("m") == nullptr);
    s.announce("b", state::Ready);
    CHECK(s.state_of("b") == state::Ready);
  }
}

TEST_CASE("an engine announced as down stays known as long as its agent speaks") {
  setup s;
  for (int i = 0; i < 60; ++i) {
    s.announce("a", state::Down, "connection refused");
    CHECK(s.of.on_tick(s.now).empty());
    s.now += 2s;
  }
  CHECK(s.state_of("a") == state::Down);
}

TEST_CASE("while the bus is down nothing expires; after it everyone gets one full period") {
  setup s;
  s.announce("a", state::Ready);
  s.hear(s.life("g", {{"a", 3}}));
  s.of.on_bus(false, s.now);
  s.now += 300s;
  CHECK(s.of.on_tick(s.now).empty());
  CHECK(s.state_of("a") == state::Ready);
  s.of.on_bus(true, s.now);
  s.now += 4'900ms;
  CHECK(s.of.on_tick(s.now).empty());
  CHECK(s.read("a").in_flight == 3);
  s.now += 1'100ms;
  CHECK(s.of.on_tick(s.now).size() == 1);
  CHECK(s.read("a").in_flight == 0);
  // Being told twice that it is connected does not put anything off.
  s.of.on_bus(true, s.now);
  s.now += 54s;
  CHECK(s.of.on_tick(s.now).size() == 1);
  CHECK(s.find("a") == nullptr);
}

TEST_CASE("loads go to the engine's cell; old ones and those of strangers do not") {
  setup s;
  s.load("a", 7);  // not announced
  s.announce("a", state::Ready);
  CHECK_FALSE(s.read("a").waiting);
  s.load("a", 4);
  CHECK(s.read("a").waiting == 4);
  s.epoch = 200;
  s.announce("a", state::Ready);
  s.epoch = 100;
  s.load("a", 9);  // the replaced agent
  CHECK(s.read("a").waiting == 4);
  s.epoch = 200;
  s.sequences.clear();
  s.load("a", 1);
  CHECK(s.read("a").waiting == 1);
  s.now += 11s;
  CHECK_FALSE(s.read("a").waiting);
}

TEST_CASE("gateways' totals: the newest of each counts, they add up, silence takes them away") {
  setup s;
  s.hear(s.life("g1", {{"a", 2}}));  // before the engine is known
  s.announce("a", state::Ready);
  s.announce("b", state::Ready);
  CHECK(s.read("a").in_flight == 2);
  CHECK(s.read("a").prefill_tokens == 20);
  const auto older = s.life("g2", {{"a", 50}});
  s.hear(s.life("g2", {{"a", 3}, {"b", 1}}));
  s.hear(older);
  CHECK(s.read("a").in_flight == 5);
  CHECK(s.read("b").in_flight == 1);
  s.hear(s.life("g2", {{"b", 4}}));
  CHECK(s.read("a").in_flight == 2);
  CHECK(s.read("b").in_flight == 4);
  s.now += 4s;
  s.hear(s.life("g1", {{"a", 1}}));
  s.now += 1s;
  s.announce("a", state::Ready);
  s.of.on_tick(s.now);
  CHECK(s.read("a").in_flight == 1);
  CHECK(s.read("b").in_flight == 0);
  s.hear(s.life("self", {{"a", 9}}), "self");
  CHECK(s.read("a").in_flight == 1);
}

TEST_CASE("a gateway that restarts with a larger epoch starts from nothing") {
  setup s;
  s.announce("a", state::Ready);
  for (int i = 0; i < 5; ++i) s.hear(s.life("g", {{"a", 8}}));
  s.epoch = 300;
  s.sequences.clear();
  s.hear(s.life("g", {}));
  CHECK(s.read("a").in_flight == 0);
}

TEST_CASE("gateways are bounded, names are checked, and what is refused is counted") {
  setup s({.max_gateways = 2});
  s.announce("a", state::Ready);
  s.hear(s.life("g1", {{"a", 1}}));
  s.hear(s.life("g2", {{"a", 1}}));
  s.hear(s.life("g3", {{"a", 1}}));
  CHECK(s.of.refused() == 1);
  CHECK(s.read("a").in_flight == 2);
  s.announce("", state::Ready);
  s.announce(std::string(600, 'x'), state::Ready);
  CHECK(s.of.refused() == 3);
  fb::EngineAnnounceT without_origin;
  without_origin.model = "m";
  without_origin.instance = "z";
  CHECK(s.hear(without_origin).empty());
  CHECK(s.find("z") == nullptr);
}

TEST_CASE("devices and how KV blocks are sent reach the topology, bounded") {
  setup s;
  auto m = s.announcement("a", state::Ready);
  m.devices = {3, 1};
  m.kv_transfer = std::make_unique<fb::KvTransferT>();
  m.kv_transfer->protocol = fb::KvProtocol::Mooncake;
  m.kv_transfer->connector = "MooncakeConnector";
  m.kv_transfer->engine_id = std::string(600, 'x');
  m.kv_transfer->bootstrap_port = 8998;
  s.hear(m);
  const auto version = s.seen()->version;
  const auto& e = s.seen()->find("m")->endpoints.front();
  CHECK(e.devices == std::vector<std::uint32_t>{3, 1});
  REQUIRE(e.kv_transfer);
  CHECK(*e.kv_transfer ==
        kv_transfer{fb::KvProtocol::Mooncake, "MooncakeConnector", std::string(512, 'x'), std::uint16_t{8998}});
  m = s.announcement("a", state::Ready);
  m.devices.resize(100);
  s.hear(m);
  CHECK(s.seen()->version == version + 1);
  CHECK(s.seen()->find("m")->endpoints.front().devices.size() == 64);
  CHECK_FALSE(s.seen()->find("m")->endpoints.front().kv_transfer);
}

TEST_CASE("adapters in use: sorted, in the topology by the next tick, and only where something changed") {
  setup s;
  const auto load = [&](std::vector<std::string> running, std::optional<std::uint32_t> most) {
    fb::EngineLoadT m;
    m.origin = s.origin("agent/a", "load");
    m.model = "m";
    m.instance = "a";
    m.adapters_running = std::move(running);
    if (most) m.max_adapters = *most;
    s.of.on_load(*message(m), s.now);
  };
  const auto use = [&] { return s.seen()->find("m")->endpoints.front().adapters_in_use; };
  s.announce("a", state::Ready);
  load({}, {});
  s.of.on_tick(s.now);
  CHECK_FALSE(use());
  const auto version = s.seen()->version;
  load({"b", "a", "b", std::string(513, 'x')}, 3);
  CHECK(s.seen()->version == version);
  s.of.on_tick(s.now);
  CHECK(s.seen()->version == version + 1);
  CHECK(use() == adapter_use{{"a", "b"}, {}, 3});
  load({"a", "b"}, 3);  // in another order
  s.of.on_tick(s.now);
  CHECK(s.seen()->version == version + 1);
  load({}, 3);
  s.of.on_tick(s.now);
  CHECK(use() == adapter_use{{}, {}, 3});
  // A restarted engine has none of them until it says so.
  load({"a"}, 3);
  auto m = s.announcement("a", state::Ready);
  m.engine_epoch = 8;
  s.hear(m);
  CHECK_FALSE(use());
  // What nobody measures any more is not known.
  load({"a"}, 3);
  s.of.on_tick(s.now);
  CHECK(use());
  for (int second = 0; second < 61; ++second) {
    s.now += 1s;
    auto again = s.announcement("a", state::Ready);
    again.engine_epoch = 8;
    s.hear(again);
    s.of.on_tick(s.now);
  }
  CHECK_FALSE(use());
}

}  // namespace
}  // namespace infernex::router
