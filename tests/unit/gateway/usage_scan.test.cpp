#include "gateway/usage_scan.hpp"

#include <string>

#include <doctest/doctest.h>

using namespace infernex::gateway;

namespace {

const std::string role =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],"
    "\"usage\":null}\n\n";
const std::string word = "data: {\"choices\":[{\"delta\":{\"content\": \"\\\"usage\\\":{\"}}]}\n\n";
const std::string total =
    "data: {\"choices\":[],\"usage\": {\"prompt_tokens\":40,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":32}}}\n\n";
const std::string done = "data: [DONE]\n\n";

}  // namespace

TEST_CASE("usage of a whole answer") {
  const auto u =
      find_usage(R"({"id":"x","usage":{"completion_tokens":2,"prompt_tokens":9,"prompt_tokens_details":null}})");
  CHECK(u.prompt_tokens == 9);
  CHECK(u.completion_tokens == 2);
  CHECK_FALSE(u.cached_tokens.has_value());
  for (const auto* text :
       {"", "{", "[]", "{}", R"({"usage":null})", R"({"usage":[1]})", R"({"usage":{"prompt_tokens":"9"}})"}) {
    CAPTURE(text);
    CHECK_FALSE(find_usage(text).prompt_tokens.has_value());
  }
  CHECK(find_usage(R"({"usage":{"prompt_tokens_details":{"cached_tokens":0}}})").cached_tokens == 0);
  // Broken within the object; found by the fuzzer.
  CHECK_FALSE(
      find_usage(R"({"usage": {"prs": [{"ompt_tokens": 40, "c": 3, "d": {"cached_tokens": 32}}})").cached_tokens);
}

TEST_CASE("whatever the cuts, the same bytes pass, in whole events, and the same is seen") {
  const auto stream = role + word + word + total + done;
  for (std::size_t first = 0; first <= stream.size(); ++first) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, stream.size()}) {
      stream_scan scan;
      std::string passed;
      std::size_t at = 0;
      while (at < stream.size()) {
        const auto length = at < first ? first - at : step;
        const auto piece = stream.substr(at, length);
        passed += scan.feed(piece);
        if (!passed.empty()) REQUIRE(passed.substr(passed.size() - 2) == "\n\n");
        at += piece.size();
      }
      REQUIRE(passed == stream);
      REQUIRE(scan.rest().empty());
      REQUIRE(scan.done());
      REQUIRE(scan.last_usage().prompt_tokens == 40);
      REQUIRE(scan.last_usage().cached_tokens == 32);
    }
  }
}

TEST_CASE("a usage that is null does not hide the one before it in the same piece") {
  stream_scan scan;
  scan.feed(total + role + done);
  CHECK(scan.last_usage().prompt_tokens == 40);
}

TEST_CASE("the first token is the first event with output, not the role") {
  stream_scan scan;
  scan.feed(role);
  CHECK_FALSE(scan.first_token());
  scan.feed(word.substr(0, word.size() - 1));
  CHECK_FALSE(scan.first_token());
  scan.feed("\n");
  CHECK(scan.first_token());
  CHECK_FALSE(scan.done());
  CHECK_FALSE(scan.last_usage().prompt_tokens.has_value());
}

TEST_CASE("text completions, tool calls and an immediate end are output too") {
  for (const auto* event :
       {R"(data: {"choices":[{"text":"a"}]})", R"(data: {"choices":[{"delta":{"tool_calls":[{}]}}]})",
        R"(data: {"choices":[{"delta":{"reasoning_content":"h"}}]})",
        R"(data: {"choices":[{"delta":{},"finish_reason":"stop"}]})"}) {
    CAPTURE(event);
    stream_scan scan;
    scan.feed(std::string(event) + "\r\n\r\n");
    CHECK(scan.first_token());
  }
  stream_scan scan;
  scan.feed("data: {\"choices\":[{\"text\":\"\"}]}\n\n: comment\n\n");
  CHECK_FALSE(scan.first_token());
}

TEST_CASE("an unfinished event is held back up to the bound") {
  stream_scan scan(16);
  CHECK(scan.feed("data: {\"a\"").empty());
  CHECK(scan.rest() == "data: {\"a\"");
  CHECK(scan.feed(":1,\"bcdefgh\"") == "data: {\"a\":1,\"bcdefgh\"");
  CHECK(scan.rest().empty());
  CHECK(scan.feed("}\n\ndata: x") == "}\n\n");
}
