#include "actors/engine/token_source.hpp"

#include <string>

#include <doctest/doctest.h>

namespace {

using namespace infernex::engine;
using kind = token_answer::kind;

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

TEST_CASE("answers of each endpoint give tokens; anything else is absent or failed") {
  const std::vector<std::uint32_t> ids{1, 128000, 4294967295};
  for (const auto* body : {R"({"token_ids":[1,128000,4294967295],"features":{}})",
                           R"([{"token_ids":[1,128000,4294967295]},{"token_ids":[7]}])",
                           R"({"count":3,"max_model_len":9,"tokens":[1,128000,4294967295]})"}) {
    const auto answer = read_token_answer(200, body);
    CHECK(answer.what == kind::tokens);
    CHECK(answer.ids == ids);
  }
  CHECK(read_token_answer(200, R"({"tokens":[]})").what == kind::tokens);
  for (const auto* body : {"", "{", "[]", "{}", "7", R"({"tokens":7})", R"({"tokens":[-1]})", R"({"tokens":[1.5]})",
                           R"({"tokens":[4294967296]})", R"([7])"})
    CHECK(read_token_answer(200, body).what == kind::failed);
  for (const unsigned status : {404U, 405U, 501U}) CHECK(read_token_answer(status, "").what == kind::absent);
  for (const unsigned status : {400U, 500U, 503U}) CHECK(read_token_answer(status, "").what == kind::failed);
}

}  // namespace
