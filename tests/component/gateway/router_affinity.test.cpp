#include "tests/component/gateway/fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

gateway::settings patient() {
  gateway::settings how;
  how.route_timeout = 5s;
  return how;
}

}  // namespace

TEST_CASE("a router that has said its name gets every query of a model; without it whoever takes them") {
  fake_engine e0("e0");
  gateway_fixture g(patient());
  g.add({&e0});
  fake_router named(*g.outside, {{"e0", e0.url()}});
  const auto chats = [&](int count) {
    for (int i = 0; i < count; ++i) CHECK(header(g.chat(), "x-infernex-decision").starts_with("kv-aware: test"));
  };
  chats(3);
  CHECK(named.by_name == 0);
  CHECK(named.queries == 3);

  named.call_itself("r0");
  REQUIRE(eventually([&] { return g.metric("infernex_gateway_routers") == 1; }));
  named.queries = 0;
  chats(20);
  CHECK(named.by_name == 20);
  CHECK(named.queries == 0);

  SUBCASE("it leaves: the others are asked") {
    named.announce("r0", true);
    REQUIRE(eventually([&] { return g.metric("infernex_gateway_routers") == 0; }));
    chats(5);
    CHECK(named.by_name == 20);
    CHECK(named.queries == 5);
  }
  SUBCASE("it ends without a word: no request notices") {
    named.lose_name();
    chats(20);
    CHECK(named.by_name == 20);
    CHECK(named.queries == 20);
    CHECK(g.metric("infernex_gateway_route_fallbacks_total") == 0);
  }
}

TEST_CASE("without affinity names are not looked at") {
  fake_engine e0("e0");
  auto how = patient();
  how.router_affinity = false;
  gateway_fixture g(how);
  g.add({&e0});
  fake_router router(*g.outside, {{"e0", e0.url()}});
  router.call_itself("r0");
  REQUIRE(eventually([&] { return g.metric("infernex_gateway_routers") == 1; }));
  CHECK(header(g.chat(), "x-infernex-decision").starts_with("kv-aware: test"));
  CHECK(router.by_name == 0);
  CHECK(router.queries == 1);
}
