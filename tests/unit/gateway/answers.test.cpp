#include "gateway/answers.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::gateway;
using namespace std::chrono_literals;

TEST_CASE("each refusal has its status, code and field") {
  struct row {
    answer a;
    unsigned status;
    const char* code;
    const char* param;
    bool retry;
  };
  const row rows[] = {
      {bad_body({"stream must be true or false", "stream"}), 400, "", "stream", false},
      {unknown_model("gpt-x"), 404, "model_not_found", "model", false},
      {unknown_path("GET", "/x"), 404, "not_found", "", false},
      {wrong_method("GET", "/v1/chat/completions", "POST"), 405, "method_not_allowed", "", false},
      {no_engine("m", "e0 is starting"), 503, "no_engine_ready", "", true},
      {engines_failed("e0 answered 503"), 503, "engines_failed", "", true},
      {too_slow(120s), 504, "timeout", "", false},
      {too_busy(8), 429, "too_many_requests", "", true},
      {bad_answer("e0", "too large"), 502, "bad_answer", "", false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.a.message);
    CHECK(row.a.status == row.status);
    CHECK(row.a.code == row.code);
    CHECK(row.a.param == row.param);
    CHECK(row.a.retry_after.has_value() == row.retry);
  }
  CHECK(unknown_model("gpt-x").message == "The model `gpt-x` does not exist.");
  CHECK(no_engine("m", "e0 is starting").message.find("e0 is starting") != std::string::npos);
  CHECK(too_slow(120s).message.find("within 120 s") != std::string::npos);
  CHECK(too_slow(1500ms).message.find("within 1500 ms") != std::string::npos);
}

TEST_CASE("header lines cannot break out of their line") {
  CHECK(header_line("a\r\nb\x80") == "a??b?");
  CHECK(header_line("abcdef", 3) == "abc");
}

TEST_CASE("a client's request id is taken only if it is harmless") {
  CHECK(usable_request_id("req-1.a:b/c"));
  CHECK_FALSE(usable_request_id(""));
  CHECK_FALSE(usable_request_id("a b"));
  CHECK_FALSE(usable_request_id("a\r\nx: y"));
  CHECK_FALSE(usable_request_id(std::string(129, 'a')));
}
