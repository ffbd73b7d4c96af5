#include "gateway/openai_request.hpp"

#include <doctest/doctest.h>

using namespace infernex::gateway;

namespace {

openai_request good(api kind, std::string& body) {
  request_scanner scanner;
  auto scanned = scanner.scan(kind, body);
  if (auto* bad = std::get_if<bad_request>(&scanned)) FAIL(bad->message);
  return std::get<openai_request>(std::move(scanned));
}

bad_request bad(api kind, std::string body) {
  request_scanner scanner;
  auto scanned = scanner.scan(kind, body);
  if (std::holds_alternative<openai_request>(scanned)) FAIL("accepted: " << body);
  return std::get<bad_request>(scanned);
}

}  // namespace

TEST_CASE("a chat body gives the fields the gateway needs and stays as it is") {
  const std::string original =
      R"( {"messages": [{"role":"user","content":"hé\"}]{"},{"role":"user","content":[{"type":"text","text":"x"}]}] ,)"
      R"("model":"m\u0031","stream":true,"max_tokens":5,"max_completion_tokens":7,"n":2,"cache_salt":"s",)"
      R"("tools": [ {"type":"function"} ] ,"stream_options":{"include_usage":true},"seed":123456789012345678901234567890} )";
  auto body = original;
  const auto r = good(api::chat, body);
  CHECK(body == original);
  CHECK(r.model == "m1");
  CHECK(r.stream);
  CHECK(r.max_tokens == 7);
  CHECK(r.n == 2);
  CHECK(r.cache_salt == "s");
  CHECK(r.form == prompt_form::messages);
  CHECK(r.prompt == R"([{"role":"user","content":"hé\"}]{"},{"role":"user","content":[{"type":"text","text":"x"}]}])");
  REQUIRE(r.rendering.size() == 1);
  CHECK(r.rendering[0].name == "tools");
  CHECK(r.rendering[0].json == R"([ {"type":"function"} ])");
}

TEST_CASE("nulls are as good as absent") {
  std::string body = R"({"model":"m","messages":[{}],"stream":null,"max_tokens":null,"n":null,"cache_salt":null})";
  const auto r = good(api::chat, body);
  CHECK_FALSE(r.stream);
  CHECK_FALSE(r.max_tokens.has_value());
  CHECK(r.n == 1);
}

TEST_CASE("every form of a completions prompt") {
  struct row {
    const char* prompt;
    prompt_form form;
    const char* first;
    std::vector<std::uint32_t> ids;
  };
  const row rows[] = {
      {R"("hello")", prompt_form::text, R"("hello")", {}},
      {R"([ "one" , "two"])", prompt_form::texts, R"("one")", {}},
      {"[1, 2,4294967295]", prompt_form::tokens, "[1, 2,4294967295]", {1, 2, 4294967295U}},
      {"[[5,6],[7]]", prompt_form::token_lists, "[[5,6],[7]]", {5, 6}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.prompt);
    auto body = R"({"model":"m","prompt":)" + std::string(row.prompt) + "}";
    const auto r = good(api::completions, body);
    CHECK(r.form == row.form);
    CHECK(r.prompt == row.first);
    CHECK(r.token_ids == row.ids);
  }
}

TEST_CASE("wrong bodies name the field") {
  struct row {
    api kind;
    const char* body;
    const char* param;
    const char* message;  // a part of it
  };
  const row rows[] = {
      {api::chat, "", "", "it is empty"},
      {api::chat, "   ", "", "not valid JSON"},
      {api::chat, "{", "", "not valid JSON"},
      {api::chat, "[]", "", "must be a JSON object"},
      {api::chat, "\"x\"", "", "must be a JSON object"},
      {api::chat, R"({"model":"m","messages":[{"role":"user","content":"hi}]})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{"role":"user"]}})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{"a":tru}]})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{"a":nul}]})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{"a":"\x"}]})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{"a":1e}]})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{}],})", "", "not valid JSON"},
      {api::chat, R"({"model":"m","messages":[{}]} {})", "", "not valid JSON"},
      {api::chat, R"({"model":"m" "messages":[{}]})", "", "not valid JSON"},
      {api::chat, "{\"model\":\"m\",\"messages\":[{\"a\":\"\xff\xfe\"}]}", "", "not valid JSON"},
      {api::chat, R"({"messages":[{}]})", "model", "missing"},
      {api::chat, R"({"model":"","messages":[{}]})", "model", "missing"},
      {api::chat, R"({"model":7,"messages":[{}]})", "model", "must be a string"},
      {api::chat, R"({"model":"m"})", "messages", "missing"},
      {api::chat, R"({"model":"m","messages":[]})", "messages", "must not be empty"},
      {api::chat, R"({"model":"m","messages":"hi"})", "messages", "must be an array"},
      {api::chat, R"({"model":"m","messages":null})", "messages", "must be an array"},
      {api::chat, R"({"model":"m","messages":[{},"hi"]})", "messages", "messages[1] must be an object"},
      {api::chat, R"({"model":"m","messages":[{}],"stream":"yes"})", "stream", "true or false"},
      {api::chat, R"({"model":"m","messages":[{}],"max_tokens":-1})", "max_tokens", "integer"},
      {api::chat, R"({"model":"m","messages":[{}],"max_tokens":1.5})", "max_tokens", "integer"},
      {api::chat, R"({"model":"m","messages":[{}],"max_completion_tokens":"9"})", "max_completion_tokens", "integer"},
      {api::chat, R"({"model":"m","messages":[{}],"n":0})", "n", "between 1 and"},
      {api::chat, R"({"model":"m","messages":[{}],"cache_salt":1})", "cache_salt", "must be a string"},
      {api::chat, R"({"model":"m","messages":[{}],"stream_options":1})", "stream_options", "must be an object"},
      {api::completions, R"({"model":"m"})", "prompt", "missing"},
      {api::completions, R"({"model":"m","prompt":null})", "prompt", "must be a string"},
      {api::completions, R"({"model":"m","prompt":{}})", "prompt", "must be a string"},
      {api::completions, R"({"model":"m","prompt":[]})", "prompt", "must not be empty"},
      {api::completions, R"({"model":"m","prompt":["a",1]})", "prompt", "must be a string"},
      {api::completions, R"({"model":"m","prompt":[1,-2]})", "prompt", "must be a string"},
      {api::completions, R"({"model":"m","prompt":[true]})", "prompt", "must be a string"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.body);
    const auto problem = bad(row.kind, row.body);
    CHECK(problem.param == row.param);
    CHECK_MESSAGE(problem.message.find(row.message) != std::string::npos, problem.message);
  }
}

TEST_CASE("every cut of a good body is refused, and none disturbs the scanner") {
  const std::string whole = R"({"model":"m","messages":[{"role":"user","content":"a\nb"}],"stop":["x"],"n":1})";
  request_scanner scanner;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    CAPTURE(cut);
    auto body = whole.substr(0, cut);
    CHECK(std::holds_alternative<bad_request>(scanner.scan(api::chat, body)));
  }
  auto body = whole;
  CHECK(std::holds_alternative<openai_request>(scanner.scan(api::chat, body)));
}

TEST_CASE("nesting is bounded") {
  const auto nested = [](int levels) {
    return R"({"model":"m","messages":[{}],"x":)" + std::string(levels, '[') + std::string(levels, ']') + "}";
  };
  auto deep = nested(60);
  good(api::chat, deep);
  CHECK(bad(api::chat, nested(100)).message == "the body is nested deeper than 64 levels");
  CHECK(bad(api::chat, nested(100'000)).message.find("nested") != std::string::npos);
}

TEST_CASE("the prompt's hash ignores sampling and the order of fields, and nothing else") {
  const auto hash = [](std::string body) { return good(api::chat, body).prompt_hash; };
  const auto base = hash(R"({"model":"m","messages":[{"role":"user","content":"a"}]})");
  CHECK(base == hash(R"({"messages":[{"role":"user","content":"a"}],"temperature":0.5,"stream":true,"model":"m"})"));
  CHECK(base != hash(R"({"model":"m2","messages":[{"role":"user","content":"a"}]})"));
  CHECK(base != hash(R"({"model":"m","messages":[{"role":"user","content":"b"}]})"));
  CHECK(base != hash(R"({"model":"m","messages":[{"role":"user","content":"a"}],"cache_salt":"s"})"));
  CHECK(base != hash(R"({"model":"m","messages":[{"role":"user","content":"a"}],"tools":[]})"));
}
