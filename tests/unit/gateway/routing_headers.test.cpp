#include "gateway/routing_headers.hpp"

#include <doctest/doctest.h>

#include "actors/router/policy_headers.hpp"
#include "gateway/placing.hpp"

namespace infernex::gateway {
namespace {

TEST_CASE("routing headers: those that say something about routing, in lower case; secrets only as hashes") {
  const http::fields from_client{{"X-Session-ID", "s-1"},
                                 {"Accept", "*/*"},
                                 {"Authorization", "Bearer secret"},
                                 {"X-SMG-Routing-Key", std::string(5'000, 'k')}};
  const auto told = routing_headers(from_client);
  REQUIRE(told.size() == 3);
  CHECK(told[0].first == "authorization");
  CHECK(told[0].second.starts_with("hash-"));
  CHECK(told[0].second.find("secret") == std::string::npos);
  CHECK(told[1] == std::pair<std::string, std::string>("x-session-id", "s-1"));
  CHECK(told[2].second.size() == 1'024);
  CHECK(routing_headers({{"Authorization", "Bearer secret"}})[0] == told[0]);
  CHECK(routing_headers({{"Authorization", "Bearer other"}})[0] != told[0]);
}

TEST_CASE("a plan of headers: those configured, once and in lower case; on the bus every answer has a token") {
  CHECK(usable_header_name("X-Team_1"));
  for (const auto* bad : {"", "x team", "x:team", "x-t\xc3\xa9"}) CHECK_FALSE(usable_header_name(bad));
  CHECK_FALSE(usable_header_name(std::string(65, 'x')));
  const auto plan = plan_headers({"X-Team", "x-team", "X-Session-Id", "bad name"}, nullptr);
  CHECK(plan.asked == std::vector<std::string>{"x-team"});  // x-session-id is always looked at
  CHECK(plan.session_tokens == std::vector<std::string>{"x-session-token"});
  const auto told = routing_headers({{"X-TEAM", "blue"}, {"x-slo-ttft-ms", "200"}, {"x-other", "1"}}, plan);
  using pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(told == pairs{{"x-slo-ttft-ms", "200"}, {"x-team", "blue"}});
}

TEST_CASE("a plan of headers by a policy: those its plugins name; a token only where one of them reads it") {
  router::scheduler_spec spec;
  spec.plugins.push_back({"", "session-affinity-scorer", {{"headerName", "X-Ours"}}});
  spec.plugins.push_back({"by-name", "session-affinity-filter", {{"strategy", "session_id"}}});
  spec.plugins.push_back({"", "header-profile-handler", {{"headerName", "X-Profile"}}});
  spec.profiles.push_back({"default", {{"session-affinity-scorer"}, {"by-name"}}});
  const auto plan = plan_headers({}, &spec);
  CHECK(plan.asked == std::vector<std::string>{"x-ours", "x-profile"});
  CHECK(plan.session_tokens == std::vector<std::string>{"x-ours"});
  CHECK(router::headers_of(spec) ==
        std::vector<router::policy_header>{{"x-ours", true}, {"x-profile", false}, {"x-session-id", false}});
  spec.plugins[0].parameters = {{"headerName", "Content-Length"}};
  CHECK(plan_headers({}, &spec).session_tokens.empty());
  spec.plugins[0].parameters = {{"headerNmae", "x"}};
  CHECK(router::headers_of(spec).empty());
  router::scheduler_spec plain;
  plain.plugins.push_back({"", "waiting-scorer", {}});
  plain.profiles.push_back({"default", {{"waiting-scorer"}}});
  CHECK(plan_headers({}, &plain).session_tokens.empty());
}

TEST_CASE("session tokens: the engine's name in base64 (RFC 4648), in place of what the engine said") {
  header_plan plan;
  plan.session_tokens = {"x-session-token"};
  const auto token = [&](std::string_view name) {
    http::fields answer{{"X-Session-Token", "of the engine"}, {"content-type", "text/plain"}};
    add_session_tokens(answer, plan, name);
    REQUIRE(answer.size() == 2);
    CHECK(answer[1].name == "x-session-token");
    return answer[1].value;
  };
  // The examples of RFC 4648 section 10.
  CHECK(token("f") == "Zg==");
  CHECK(token("fo") == "Zm8=");
  CHECK(token("foo") == "Zm9v");
  CHECK(token("foob") == "Zm9vYg==");
  CHECK(token("foobar") == "Zm9vYmFy");
  CHECK(token("\xff\xfe") == "//4=");
}

TEST_CASE("routing headers travel with the question to a router") {
  route_request request;
  request.request_id = "r";
  request.model = "m";
  request.headers = {{"x-session-id", "s-1"}};
  const auto bytes = encode_route_query("gateway/test", 1, 1, "m", {&request});
  const auto* query = fb::GetRouteQuery(bytes.data());
  REQUIRE(query->items()->size() == 1);
  const auto* headers = query->items()->Get(0)->headers();
  REQUIRE(headers);
  REQUIRE(headers->size() == 1);
  CHECK(headers->Get(0)->name()->str() == "x-session-id");
  CHECK(headers->Get(0)->value()->str() == "s-1");
}

}  // namespace
}  // namespace infernex::gateway
