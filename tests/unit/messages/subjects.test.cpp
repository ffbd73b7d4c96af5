#include "messages/subjects.hpp"

#include <set>

#include <doctest/doctest.h>

using namespace infernex;

TEST_CASE("escaping a subject token is injective and reversible") {
  const std::vector<std::string> texts{
      "",         "a",  "_",  "a.b", "a_2Eb", "Qwen/Qwen3-8B", "10.0.0.5:8000", "a b*", std::string("\0x", 2),
      "\xC3\xA9", "__", "_2E"};
  std::set<std::string> seen;
  for (const auto& text : texts) {
    const auto token = escape_token(text);
    CHECK(seen.insert(token).second);
    CHECK(token.find_first_of(". *>") == std::string::npos);
    const auto back = unescape_token(token);
    REQUIRE(back);
    CHECK(*back == text);
  }
  CHECK(escape_token("Qwen/Qwen3-8B") == "Qwen_2FQwen3-8B");
}

TEST_CASE("a token that no escape made is refused") {
  for (const auto* bad : {"", "a_", "a_2", "a_2e", "a_41", "a.b", "a b", "_G0"}) {
    CAPTURE(bad);
    const auto back = unescape_token(bad);
    REQUIRE_FALSE(back);
    CHECK(back.failure().code == errc::malformed_subject);
  }
}

TEST_CASE("subjects carry the prefix and parse back") {
  const subjects names("site7.ix");
  CHECK(names.announce("m/x", "e 1").name == "site7.ix.engine.m_2Fx.e_201.announce");
  CHECK(names.kv_match("m").name == "site7.ix.kv.m.match");
  CHECK(names.any_kv_delta().name == "site7.ix.kv.*.*.delta");
  CHECK(names.any_route_query().name == "site7.ix.route.*.query");

  CHECK(names.route_query_of("m/x", "r.1").name == "site7.ix.route.m_2Fx.r_2E1.query");
  CHECK(names.any_route_query_of("r").name == "site7.ix.route.*.r.query");
  CHECK(names.any_route_query_of_any().name == "site7.ix.route.*.*.query");
  CHECK(names.router_announce("r").name == "site7.ix.router.r.announce");
  CHECK(names.pd_control("g 1").name == "site7.ix.pd.g_201.control");

  CHECK(names.hw_sample("n1.rack").name == "site7.ix.hw.n1_2Erack.sample");
  CHECK(names.hw_event("n1").name == "site7.ix.hw.n1.event");
  CHECK(names.any_hw_inventory().name == "site7.ix.hw.*.inventory");
  CHECK(names.verdict("n1", 12).name == "site7.ix.diag.n1.12.verdict");
  CHECK(names.verdict("n1", std::nullopt).name == "site7.ix.diag.n1.node.verdict");
  CHECK(names.any_verdict().name == "site7.ix.diag.*.*.verdict");

  CHECK(names.announce_request().name == "site7.ix.engine.announce-request");

  const auto engine = names.parse(names.load("m/x", "e.1").name);
  REQUIRE(engine);
  CHECK(engine->model == "m/x");
  CHECK(engine->instance == "e.1");
  const auto verdict = names.parse(names.verdict("n1.rack", 7).name);
  REQUIRE(verdict);
  CHECK(verdict->model == "n1.rack");
  CHECK(verdict->instance == "7");
  const auto model_only = names.parse(names.request_life("m").name);
  REQUIRE(model_only);
  CHECK(model_only->model == "m");
  CHECK(model_only->instance.empty());
  for (const auto* bad :
       {"ix.v1.engine.m.e.load", "site7.ix", "site7.ix.engine", "site7.ixx.kv.m.match", "site7.ix.kv.m_.match"})
    CHECK_FALSE(names.parse(bad));
}
