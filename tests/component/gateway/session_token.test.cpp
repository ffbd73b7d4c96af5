// A session goes on where it began: the engine's name in the answer, sent back by the client.

#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

/// Decides in place, by chance but for the session, whose header is `name`.
gateway::settings by_session(std::string name) {
  router::scheduler_spec how;
  how.name = "by-session";
  how.plugins.push_back({"", "session-affinity-filter", {{"headerName", std::move(name)}}});
  how.plugins.push_back({"", "random-picker", {}});
  how.profiles.push_back({"default", {{"session-affinity-filter"}, {"random-picker"}}});
  gateway::settings settings;
  settings.router = gateway::router_mode::embedded;
  settings.policy.config = std::move(how);
  return settings;
}

}  // namespace

TEST_CASE("embedded: requests with an answer's token go where that came from, under the policy's own header name") {
  fake_engine e0("e0");
  fake_engine e1("e1");
  for (const std::string name : {"x-session-token", "X-Ours"}) {
    gateway_fixture g(by_session(name), std::make_shared<indexer::index_set>());
    g.add({&e0, &e1});
    const auto first = g.chat();
    REQUIRE(first.status == 200);
    const auto instance = header(first, "x-infernex-endpoint");
    const auto token = header(first, name);
    CHECK(token == (instance == "e0" ? "ZTA=" : "ZTE="));
    const auto& other = instance == "e0" ? "ZTE=" : "ZTA=";
    for (int i = 0; i < 8; ++i) {
      const auto again = g.chat({}, {{name, token}});
      CHECK(header(again, "x-infernex-endpoint") == instance);
      CHECK(header(again, name) == token);
      CHECK(header(g.chat({}, {{name, other}}), "x-infernex-endpoint") != instance);
    }
    if (name != "x-session-token") CHECK(header(first, "x-session-token").empty());
  }
}

TEST_CASE("a token where it may be of use only: not by a policy that never reads it, always with routers on the bus") {
  fake_engine e0("e0");
  gateway::settings plain;
  plain.router = gateway::router_mode::embedded;
  gateway_fixture embedded(plain, std::make_shared<indexer::index_set>());
  embedded.add({&e0});
  CHECK(header(embedded.chat(), "x-session-token").empty());
  gateway_fixture on_bus;
  on_bus.add({&e0});
  fake_router router(*on_bus.outside, {{"e0", e0.url()}});
  const auto answer = on_bus.chat();
  CHECK(header(answer, "x-infernex-decision").starts_with("kv-aware: test"));
  CHECK(header(answer, "x-session-token") == "ZTA=");
}
