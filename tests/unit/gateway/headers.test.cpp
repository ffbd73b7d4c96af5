#include "gateway/headers.hpp"

#include <doctest/doctest.h>

using namespace infernex;

TEST_CASE("hop-by-hop headers stay on their hop") {
  const http::fields from_client{{"Host", "a"},
                                 {"connection", "Keep-Alive, X-Mine ,"},
                                 {"X-mine", "1"},
                                 {"Keep-Alive", "5"},
                                 {"Transfer-Encoding", "chunked"},
                                 {"Accept-Encoding", "gzip"},
                                 {"Content-Length", "3"},
                                 {"Authorization", "Bearer k"},
                                 {"X-Request-ID", "theirs"},
                                 {"Expect", "100-continue"},
                                 {"Content-Type", "application/json"}};
  const auto sent = gateway::to_engine(from_client, "ours");
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].name == "Authorization");
  CHECK(sent[1].name == "Content-Type");
  CHECK(sent[2].name == "X-Request-Id");
  CHECK(sent[2].value == "ours");
}

TEST_CASE("the engine's headers reach the client but for those the gateway sets") {
  const auto sent = gateway::to_client({{"Content-Type", "text/event-stream"},
                                        {"Server", "uvicorn"},
                                        {"Transfer-Encoding", "chunked"},
                                        {"x-infernex-endpoint", "forged"},
                                        {"x-kept", "1"}});
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].name == "x-kept");
}

TEST_CASE(
    "the rank that was chosen goes to the engine; a client's own only where the engine is not known to have any") {
  const http::fields mine{{"x-Data-Parallel-Rank", "7"}, {"Accept", "a"}};
  const auto to_one = gateway::to_engine(mine, "id");
  CHECK(http::find(to_one, "x-data-parallel-rank") == "7");
  const auto to_rank = gateway::to_engine(mine, "id", 0);
  CHECK(http::find(to_rank, "x-data-parallel-rank") == "0");
  CHECK(to_rank.size() == 3);
}
