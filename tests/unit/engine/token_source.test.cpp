#include "actors/engine/token_source.hpp"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace infernex::engine;
using verdict = token_verdict;

TEST_CASE("calls have the shapes of vLLM's endpoints") {
  const plain_prompt text{prompt_kind::completion, "m", "a \"b\""};
  const plain_prompt chat{prompt_kind::chat, "m", "hi"};
  CHECK(generate_call(text, 1).path == "/v1/completions");
  CHECK(generate_call(text, 1).body ==
        R"({"model":"m","prompt":"a \"b\"","max_tokens":1,"temperature":0,"stream":false})");
  CHECK(generate_call(chat, 1).path == "/v1/chat/completions");
  CHECK(token_call(token_endpoint::render, text).path == "/v1/completions/render");
  CHECK(token_call(token_endpoint::render, text).body == generate_call(text, 1).body);
  CHECK(token_call(token_endpoint::render, chat).path == "/v1/chat/completions/render");
  CHECK(token_call(token_endpoint::tokenize, text).path == "/tokenize");
  CHECK(token_call(token_endpoint::tokenize, text).body == R"({"model":"m","prompt":"a \"b\""})");
  CHECK(token_call(token_endpoint::tokenize, chat).body ==
        R"({"model":"m","messages":[{"role":"user","content":"hi"}]})");
}

TEST_CASE("answers of each endpoint give tokens; another body is a failure") {
  const std::vector<std::uint32_t> ids{1, 128000, 4294967295};
  for (const auto* body : {R"({"token_ids":[1,128000,4294967295],"features":{}})",
                           R"([{"token_ids":[1,128000,4294967295]},{"token_ids":[7]}])",
                           R"({"count":3,"max_model_len":9,"tokens":[1,128000,4294967295]})"}) {
    const auto answer = read_token_answer(200, body);
    CHECK(answer.verdict == verdict::tokens);
    CHECK(answer.ids == ids);
  }
  CHECK(read_token_answer(200, R"({"tokens":[]})").verdict == verdict::tokens);
  for (const auto* body : {"", "{", "[]", "{}", "7", R"({"tokens":7})", R"({"tokens":[-1]})", R"({"tokens":[1.5]})",
                           R"({"tokens":[4294967296]})", R"([7])"})
    CHECK(read_token_answer(200, body).verdict == verdict::failed);
}

TEST_CASE("every other status has its verdict, whatever the body says") {
  const std::vector<std::pair<unsigned, verdict>> table{
      {0, verdict::failed},    {204, verdict::failed},  {302, verdict::failed},  {400, verdict::refused},
      {401, verdict::denied},  {403, verdict::denied},  {404, verdict::absent},  {405, verdict::absent},
      {408, verdict::failed},  {413, verdict::refused}, {422, verdict::refused}, {429, verdict::failed},
      {499, verdict::refused}, {500, verdict::failed},  {501, verdict::absent},  {503, verdict::failed}};
  for (const auto& [status, expected] : table) {
    CAPTURE(status);
    const auto answer = read_token_answer(status, R"({"token_ids":[1]})");
    CHECK(answer.verdict == expected);
    CHECK(answer.ids.empty());
  }
}

}  // namespace
