#include <doctest/doctest.h>

#include "gateway/key_cache.hpp"
#include "gateway/token_chain.hpp"

using namespace infernex::gateway;
using namespace std::chrono_literals;

namespace {
const clock_point start{1000s};
using ids = std::vector<std::uint32_t>;
}  // namespace

TEST_CASE("render gets the client's own body") {
  const auto chat = make_token_call(token_step::render, api::chat, {}, {});
  CHECK(chat.path == "/v1/chat/completions/render");
  CHECK(chat.body.empty());
  CHECK(make_token_call(token_step::render, api::completions, {}, {}).path == "/v1/completions/render");
}

TEST_CASE("tokenize gets what changes the prompt's tokens") {
  std::string body =
      R"({"model":"a\"b","stream":true,"messages":[{"role":"user","content":"x"}],"tools":[1],"chat_template":"t"})";
  request_scanner scanner;
  const auto chat = std::get<openai_request>(scanner.scan(api::chat, body));
  const auto call = make_token_call(token_step::tokenize, api::chat, chat, {});
  CHECK(call.path == "/tokenize");
  CHECK(call.body == R"({"model":"a\"b","messages":[{"role":"user","content":"x"}],"tools":[1],"chat_template":"t"})");

  std::string texts = R"({"model":"m","prompt":["one","two"]})";
  const auto completion = std::get<openai_request>(scanner.scan(api::completions, texts));
  CHECK(make_token_call(token_step::tokenize, api::completions, completion, {}).body ==
        R"({"model":"m","prompt":"one"})");
}

TEST_CASE("answers to token calls") {
  struct row {
    unsigned status;
    const char* body;
    token_verdict verdict;
    ids tokens;
  };
  const row rows[] = {
      {200, R"({"token_ids":[1,2,3],"features":{}})", token_verdict::tokens, {1, 2, 3}},
      {200, R"([{"token_ids":[4]},{"token_ids":[5]}])", token_verdict::tokens, {4}},
      {200, R"({"count":2,"max_model_len":9,"tokens":[7,8]})", token_verdict::tokens, {7, 8}},
      {200, R"({"tokens":[]})", token_verdict::tokens, {}},
      {200, R"({"tokens":"1"})", token_verdict::failed, {}},
      {200, R"([])", token_verdict::failed, {}},
      {200, R"({"token_ids":[1,-2]})", token_verdict::failed, {}},
      {200, R"({"token_ids":[1,)", token_verdict::failed, {}},
      {200, "", token_verdict::failed, {}},
      {404, R"({"token_ids":[1]})", token_verdict::absent, {}},
      {405, "", token_verdict::absent, {}},
      {501, "", token_verdict::absent, {}},
      {400, "", token_verdict::refused, {}},
      {429, "", token_verdict::failed, {}},
      {503, "", token_verdict::failed, {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.body);
    CAPTURE(row.status);
    const auto answer = read_token_answer(row.status, row.body);
    CHECK(answer.verdict == row.verdict);
    CHECK(answer.ids == row.tokens);
  }
}

TEST_CASE("an absent endpoint is passed over until its time") {
  const std::vector<token_step> chain{token_step::render, token_step::tokenize, token_step::text};
  token_endpoints endpoints(2);
  CHECK(next_step(chain, 0, "e0", endpoints, start) == 0);
  endpoints.avoid("e0", token_step::render, start + 60s);
  CHECK(next_step(chain, 0, "e0", endpoints, start) == 1);
  CHECK(next_step(chain, 0, "e1", endpoints, start) == 0);
  endpoints.avoid("e0", token_step::tokenize, start + 60s);
  CHECK(next_step(chain, 0, "e0", endpoints, start) == 2);
  CHECK(next_step(chain, 0, "e0", endpoints, start + 60s) == 0);
  CHECK(next_step({token_step::render}, 0, "e0", endpoints, start) == 1);
  endpoints.avoid("e1", token_step::render, start + 60s);  // full: forgets the others
  CHECK(next_step(chain, 0, "e0", endpoints, start) == 0);
}

TEST_CASE("exact repeats are kept, least recently used out first, within the bytes") {
  const auto value = [](std::uint32_t tokens) {
    prompt_keys v;
    v.prompt_tokens = tokens;
    v.keys.assign(10, tokens);
    return v;
  };
  key_cache cache(3 * (128 + 80));
  cache.put(1, 16, value(1));
  cache.put(2, 16, value(2));
  cache.put(3, 16, value(3));
  REQUIRE(cache.get(1, 16) != nullptr);
  CHECK(cache.get(1, 16)->keys.front() == 1);
  CHECK(cache.get(1, 128) == nullptr);
  cache.put(4, 16, value(4));
  CHECK(cache.get(2, 16) == nullptr);
  CHECK(cache.get(1, 16) != nullptr);
  CHECK(cache.size() == 3);
  CHECK(cache.bytes() <= 3 * (128 + 80));
  cache.put(4, 16, value(9));
  CHECK(cache.get(4, 16)->prompt_tokens == 9);
  CHECK(cache.size() == 3);
  prompt_keys huge;
  huge.keys.assign(1000, 1);
  cache.put(5, 16, huge);
  CHECK(cache.get(5, 16) == nullptr);
  CHECK(cache.size() == 3);
}
