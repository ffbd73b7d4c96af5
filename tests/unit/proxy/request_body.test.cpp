#include "actors/proxy/request_body.hpp"

#include <doctest/doctest.h>

using namespace infernex;
using namespace infernex::proxy;

namespace {

request_facts read(api kind, std::string_view body) {
  auto facts = read_request(kind, body);
  REQUIRE_MESSAGE(facts.ok(), (facts ? std::string() : facts.failure().detail));
  return *facts;
}

}  // namespace

TEST_CASE("a prefill request: one token, not streamed, everything else as the client wrote it") {
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},)"
      R"("max_tokens":100,"min_tokens":5,"temperature":0.70000000000000001,"seed":18446744073709551615})";
  const auto facts = read(api::chat, body);
  CHECK(facts.stream);
  CHECK(facts.include_usage);
  CHECK(facts.max_tokens == 100U);
  const json_edit kv{"kv_transfer_params", "{\"x\":1}"};
  CHECK(prefill_body(facts, body, {&kv, 1}) ==
        R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false,"max_tokens":1,)"
        R"("temperature":0.70000000000000001,"seed":18446744073709551615,"kv_transfer_params":{"x":1}})");
}

TEST_CASE("max_completion_tokens is set only where it is, and wins") {
  const std::string body = R"({"model":"m","messages":[{}],"max_completion_tokens":9,"max_tokens":3})";
  const auto facts = read(api::chat, body);
  CHECK(facts.max_tokens == 9U);
  CHECK(prefill_body(facts, body, {}) ==
        R"({"model":"m","messages":[{}],"max_completion_tokens":1,"max_tokens":1,"stream":false})");
}

TEST_CASE("a client cannot say where blocks come from") {
  const std::string body =
      R"({"prompt":"p","kv_transfer_params":{"remote_host":"10.0.0.9"},"bootstrap_host":"evil","kv\u005ftransfer_params":1})";
  CHECK(plain_body(body) == R"({"prompt":"p"})");
  const json_edit kv{"kv_transfer_params", "{}"};
  CHECK(decode_body(body, {&kv, 1}) == R"({"prompt":"p","kv_transfer_params":{}})");
}

TEST_CASE("what can be continued, and what cannot") {
  CHECK(read(api::completions, R"({"prompt":"p"})").not_continuable.empty());
  CHECK(read(api::completions, R"({"prompt":["p"]})").not_continuable.empty());
  CHECK(read(api::completions, R"({"prompt":["p","q"]})").prompts == 2);
  CHECK_FALSE(read(api::completions, R"({"prompt":["p","q"]})").not_continuable.empty());
  CHECK_FALSE(read(api::completions, R"({"prompt":[1,2]})").not_continuable.empty());
  CHECK(read(api::completions, R"({"prompt":[1,2]})").prompts == 1);
  CHECK(read(api::completions, R"({"prompt":[[1],[2],[3]]})").prompts == 3);
  CHECK_FALSE(read(api::completions, R"({"prompt":"p","n":2})").not_continuable.empty());
  CHECK_FALSE(read(api::chat, R"({"messages":[{}],"response_format":{"type":"json_object"}})").not_continuable.empty());
  CHECK(read(api::chat, R"({"messages":[{}],"response_format":{"type":"text"}})").not_continuable.empty());
  CHECK(read(api::chat, R"({"messages":[{}],"stop":["a","b"]})").stops == std::vector<std::string>{"a", "b"});
}

TEST_CASE("bad bodies are refused with a line that says why") {
  const auto why = [](api kind, std::string_view body) {
    const auto read = read_request(kind, body);
    return read ? std::string("accepted") : read.failure().detail;
  };
  CHECK(why(api::chat, "") != "accepted");
  CHECK(why(api::chat, "[]") == "the body must be a JSON object");
  CHECK(why(api::chat, "{\"messages\":[{}]") != "accepted");
  CHECK(why(api::chat, "{}") == "messages is missing");
  CHECK(why(api::chat, R"({"messages":[]})") == "messages must be an array, and not empty");
  CHECK(why(api::completions, R"({"prompt":[]})") == "prompt must not be empty");
  CHECK(why(api::completions, R"({"prompt":7})") == "prompt must be a string or an array");
  CHECK(why(api::chat, R"({"messages":[{}],"x":)" + std::string(100, '[') + std::string(100, ']') + "}") ==
        "the body is nested deeper than 64 levels");
  CHECK(why(api::chat, std::string(100'000, '[')).starts_with("the body is n"));
}
