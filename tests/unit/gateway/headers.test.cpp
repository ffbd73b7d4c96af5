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
