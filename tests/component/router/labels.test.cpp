// What an engine's descriptor says of it, from its agent over the bus to a router that decides by it.

#include <mutex>

#include <doctest/doctest.h>

#include "actors/engine/actor.hpp"
#include "actors/router/fleet.hpp"
#include "tests/component/engine/scripted_engine.hpp"
#include "tests/component/router/fixture.hpp"

namespace infernex {
namespace {

using namespace std::chrono_literals;
using test::eventually;

router::settings only_of_zone(std::string zone) {
  router::scheduler_spec by_label;
  by_label.name = "by-label";
  by_label.plugins.push_back(
      {"", "label-selector-filter", {{"matchLabels", boost::json::object{{"zone", std::move(zone)}}}}});
  by_label.profiles.push_back({"default", {{"label-selector-filter"}}});
  router::settings how;
  how.policy.config = std::move(by_label);
  return how;
}

TEST_CASE("labels, devices and KV transfer: from a descriptor to the topology, and to a policy that goes by labels") {
  const test::scripted_engine engine;
  test::router_setup s(only_of_zone("east"));
  std::mutex guard;
  router::fleet heard;
  const auto listening =
      s.outside->subscribe(s.outside->names().any_announce(), {}, [&](inbound<fb::EngineAnnounce>&& m) {
        const std::lock_guard lock(guard);
        heard.on_announce(*m.message, m.received_at);
      });
  REQUIRE(listening);

  engine::settings agents;
  agents.announce_interval = 100ms;
  agents.parity_probe = false;
  for (const auto* name : {"e0", "e1"}) {
    auto& e = agents.engines.emplace_back();
    e.instance = name;
    e.url = engine.url();
    e.labels = {{"zone", "west"}};
  }
  auto& described = agents.engines[1];
  described.labels = {{"zone", "east"}, {"team", "blue"}};
  described.devices = {2, 3};
  described.kv_transfer =
      discovery::kv_transfer{fb::KvProtocol::Mooncake, "MooncakeConnector", "id-1", std::uint16_t{8998}};
  const auto running = engine::start(s.process, agents);
  REQUIRE(running);

  // Both are known, and the labels leave one of them.
  CHECK(eventually([&] {
    const auto got = s.ask(1, "org/model");
    return got && !got->choices.empty() && got->choices[0]->engines == 2 && got->choices[0]->instance == "e1" &&
           got->choices[0]->considered == 1;
  }));
  published<router::topology>::reader topologies(heard.topologies());
  CHECK(eventually([&] {
    const std::lock_guard lock(guard);
    const auto* model = topologies.get()->find("org/model");
    return model && model->find("e0") && model->find("e1");
  }));
  (*running)->stop(5s);

  const std::lock_guard lock(guard);
  const auto* model = topologies.get()->find("org/model");
  REQUIRE(model);
  const auto* e1 = model->find("e1");
  REQUIRE(e1);
  using pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(e1->labels == pairs{{"team", "blue"}, {"zone", "east"}});
  CHECK(e1->devices == std::vector<std::uint32_t>{2, 3});
  REQUIRE(e1->kv_transfer);
  CHECK(*e1->kv_transfer ==
        router::kv_transfer{fb::KvProtocol::Mooncake, "MooncakeConnector", "id-1", std::uint16_t{8998}});
  REQUIRE(model->find("e0"));
  CHECK_FALSE(model->find("e0")->kv_transfer);
}

}  // namespace
}  // namespace infernex
