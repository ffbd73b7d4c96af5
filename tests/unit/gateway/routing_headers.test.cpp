#include "gateway/routing_headers.hpp"

#include <doctest/doctest.h>

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
