#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <doctest/doctest.h>

#include "actors/simulator/openai_request.hpp"
#include "actors/simulator/openai_response.hpp"

using namespace infernex::simulator;
namespace json = boost::json;

namespace {

completion_request accepted(parsed<completion_request> outcome) {
  if (const auto* problem = std::get_if<refusal>(&outcome)) FAIL(problem->message);
  return std::get<completion_request>(std::move(outcome));
}

template <class T>
refusal refused(const parsed<T>& outcome) {
  const auto* problem = std::get_if<refusal>(&outcome);
  REQUIRE(problem);
  return *problem;
}

parsed<completion_request> chat(std::string_view body, const settings& engine = {}) {
  return parse_chat(json::parse({body.data(), body.size()}).as_object(), engine);
}
parsed<completion_request> completion(std::string_view body, const settings& engine = {}) {
  return parse_completion(json::parse({body.data(), body.size()}).as_object(), engine);
}

/// The JSON of `data: {…}\n\n`.
json::value event_body(std::string_view event) {
  REQUIRE(event.starts_with("data: "));
  REQUIRE(event.ends_with("\n\n"));
  event = event.substr(6, event.size() - 8);
  return json::parse({event.data(), event.size()});
}

}  // namespace

TEST_CASE("a chat request with every field") {
  const auto request = accepted(chat(R"({"model":"sim/llama","messages":[{"role":"system","content":"s"},
    {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}],
    "max_tokens":9,"max_completion_tokens":7,"min_tokens":2,"n":3,"stop":["END"],"stream":true,"seed":5,
    "stream_options":{"include_usage":true},"temperature":0.7,"ignore_eos":true,"cache_salt":"x","user":"somebody"})"));
  CHECK(request.chat);
  CHECK(request.prompts.size() == 1);
  CHECK(*decode(request.prompts[0]) == "<|system|>\ns<|end|>\n<|user|>\none\ntwo<|end|>\n<|assistant|>\n");
  CHECK(request.echo_texts == std::vector<std::string>{"one\ntwo"});
  CHECK(request.max_tokens == std::vector<std::uint32_t>{7});
  CHECK(request.min_tokens == 2);
  CHECK(request.n == 3);
  CHECK(request.stops == std::vector<std::string>{"END"});
  CHECK(request.stream);
  CHECK(request.include_usage);
  CHECK(request.ignore_eos);
  CHECK(request.seed == 5U);
  CHECK(request.cache_salt == "x");
}

TEST_CASE("absent and null fields take their defaults") {
  settings engine;
  engine.max_model_len = 1'000;
  const auto request =
      accepted(chat(R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":null,"stop":null})", engine));
  CHECK(request.model == "sim/llama");
  CHECK(request.max_tokens[0] == 1'000 - request.prompts[0].size());
  CHECK(request.n == 1);
  CHECK(request.stops.empty());
  CHECK_FALSE(request.stream);
  CHECK_FALSE(request.seed);
  engine.default_max_tokens = 20;
  CHECK(accepted(chat(R"({"messages":[{"role":"user","content":"hi"}]})", engine)).max_tokens[0] == 20);
  CHECK(accepted(completion(R"({"prompt":"hi"})", engine)).max_tokens[0] == 16);
}

TEST_CASE("a completion's prompt as text, texts, ids and lists of ids") {
  using token_lists = std::vector<std::vector<token_id>>;
  CHECK(accepted(completion(R"({"prompt":"abc d"})")).prompts == token_lists{*encode("abc d")});
  CHECK(accepted(completion(R"({"prompt":["a","b"]})")).prompts == token_lists{*encode("a"), *encode("b")});
  CHECK(accepted(completion(R"({"prompt":[97,98]})")).prompts == token_lists{{97, 98}});
  CHECK(accepted(completion(R"({"prompt":[[97],[98]]})")).prompts.size() == 2);
}

TEST_CASE("wrong types and values are refused with the field's name") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"messages":"hi"})", "messages"},
      {R"({"messages":[]})", "messages"},
      {R"({})", "messages"},
      {R"({"messages":[{"content":"x"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user","content":7}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", "messages[0].content"},
      {R"({"messages":[7]})", "messages[0]"},
      {R"({"model":7,"messages":[{"role":"user","content":"x"}]})", "model"},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":"many"})", "max_tokens"},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":0})", "max_tokens"},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":-1})", "max_tokens"},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":1.5})", "max_tokens"},
      {R"({"messages":[{"role":"user","content":"x"}],"n":0})", "n"},
      {R"({"messages":[{"role":"user","content":"x"}],"n":1000})", "n"},
      {R"({"messages":[{"role":"user","content":"x"}],"stream":"yes"})", "stream"},
      {R"({"messages":[{"role":"user","content":"x"}],"stop":[1]})", "stop"},
      {R"({"messages":[{"role":"user","content":"x"}],"stop":""})", "stop"},
      {R"({"messages":[{"role":"user","content":"x"}],"temperature":-1})", "temperature"},
      {R"({"messages":[{"role":"user","content":"x"}],"stream_options":{}})", "stream_options"},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":4,"min_tokens":5})", "min_tokens"},
      {R"({"messages":[{"role":"user","content":"x"}],"continue_final_message":true})", "continue_final_message"},
      {R"({"messages":[{"role":"user","content":"x"}],"max_tokens":40000})", "messages"},
  };
  for (const auto& [body, param] : cases) {
    CAPTURE(body);
    const auto problem = refused(chat(body));
    CHECK(problem.status == 400);
    CHECK(problem.param == param);
    CHECK_FALSE(problem.message.empty());
  }
  for (std::string body : {R"({})", R"({"prompt":7})", R"({"prompt":[]})", R"({"prompt":""})", R"({"prompt":[97,"b"]})",
                           R"({"prompt":[99999999]})", R"({"prompt":[-1]})", R"({"prompt":["a",7]})"}) {
    CAPTURE(body);
    CHECK(refused(completion(body)).param == "prompt");
  }
}

TEST_CASE("an unknown model is not found; aliases are") {
  settings engine;
  const auto problem = refused(chat(R"({"model":"gpt","messages":[{"role":"user","content":"x"}]})", engine));
  CHECK(problem.status == 404);
  const auto body = json::parse(render(problem)).as_object().at("error").as_object();
  CHECK(body.at("message") == "The model `gpt` does not exist.");
  CHECK(body.at("type") == "NotFoundError");
  CHECK(body.at("param") == "model");
  CHECK(body.at("code") == 404);
  engine.served_model_names = {"gpt", "other"};
  CHECK(accepted(chat(R"({"model":"other","messages":[{"role":"user","content":"x"}]})", engine)).model == "other");
  CHECK(refused(chat(R"({"model":"sim/llama","messages":[{"role":"user","content":"x"}]})", engine)).status == 404);
}

TEST_CASE("a body that is no JSON object is refused with the place") {
  CHECK(std::holds_alternative<json::object>(parse_body(" {\"a\":1} \n")));
  for (std::string body : {"", "{", "{\"a\":}", "[1]", "{} x", "{\"a\":\"\xff\"}", "{\"a\":\"\\ud800\"}"}) {
    CAPTURE(body);
    CHECK(refused(parse_body(body)).status == 400);
  }
  CHECK(refused(parse_body("{\"a\":}")).message.find("byte 5") != std::string::npos);
  CHECK(refused(parse_body(std::string(100'000, '['))).status == 400);
}

TEST_CASE("tokenize takes a prompt or messages") {
  const settings engine;
  auto outcome = parse_tokenize(json::parse(R"({"prompt":"abc d"})").as_object(), engine);
  CHECK(std::get<tokenize_request>(outcome).tokens == *encode("abc d"));
  outcome = parse_tokenize(
      json::parse(R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":false})").as_object(), engine);
  CHECK(*decode(std::get<tokenize_request>(outcome).tokens) == "<|user|>\nx<|end|>\n");
  CHECK(refused(parse_tokenize({}, engine)).param == "prompt");
  CHECK(refused(parse_detokenize({}, engine)).param == "tokens");
  CHECK(
      std::get<std::vector<token_id>>(parse_detokenize(json::parse(R"({"tokens":[97]})").as_object(), engine)).size() ==
      1);
}

TEST_CASE("whole answers have vLLM's fields and the usage") {
  const response_writer writer(true, "chatcmpl-1", "m", 1'700'000'000);
  const std::vector<answer> answers = {{"one", finish_reason::stop, "END"},
                                       {"two \"quoted\"", finish_reason::length, {}}};
  const auto body =
      json::parse(writer.whole(answers, {.prompt_tokens = 20, .completion_tokens = 7, .cached_tokens = 16}))
          .as_object();
  CHECK(body.at("id") == "chatcmpl-1");
  CHECK(body.at("object") == "chat.completion");
  const auto& choices = body.at("choices").as_array();
  REQUIRE(choices.size() == 2);
  CHECK(choices[0].at("message").at("content") == "one");
  CHECK(choices[0].at("message").at("role") == "assistant");
  CHECK(choices[0].at("finish_reason") == "stop");
  CHECK(choices[0].at("stop_reason") == "END");
  CHECK(choices[1].at("index") == 1);
  CHECK(choices[1].at("message").at("content") == "two \"quoted\"");
  CHECK(choices[1].at("finish_reason") == "length");
  CHECK(choices[1].at("stop_reason").is_null());
  CHECK(body.at("usage").at("total_tokens") == 27);
  CHECK(body.at("usage").at("prompt_tokens_details").at("cached_tokens") == 16);

  const response_writer text(false, "cmpl-1", "m", 0);
  const auto plain = json::parse(text.whole(answers, {})).as_object();
  CHECK(plain.at("object") == "text_completion");
  CHECK(plain.at("choices").at(0).at("text") == "one");
}

TEST_CASE("streamed events have vLLM's shape") {
  const response_writer writer(true, "chatcmpl-1", "m", 0);
  const auto role = event_body(writer.role_event(1));
  CHECK(role.at("object") == "chat.completion.chunk");
  CHECK(role.at("choices").at(0).at("index") == 1);
  CHECK(role.at("choices").at(0).at("delta").at("role") == "assistant");
  const auto middle = event_body(writer.event(0, {" ab", {}, {}}));
  CHECK(middle.at("choices").at(0).at("delta").at("content") == " ab");
  CHECK(middle.at("choices").at(0).at("finish_reason").is_null());
  const auto last = event_body(writer.event(0, {"", finish_reason::stop, "X"}));
  CHECK(last.at("choices").at(0).at("finish_reason") == "stop");
  CHECK(last.at("choices").at(0).at("stop_reason") == "X");
  const auto counts = event_body(writer.usage_event({1, 2, 0}));
  CHECK(counts.at("choices").as_array().empty());
  CHECK(counts.at("usage").at("completion_tokens") == 2);
  const auto text = event_body(response_writer(false, "cmpl-1", "m", 0).event(0, {" ab", {}, {}}));
  CHECK(text.at("choices").at(0).at("text") == " ab");
}

TEST_CASE("version follows the event dialect") {
  settings engine;
  CHECK(render_version(engine) == R"({"version":"0.26.0"})");
  engine.kv_events.framing = replay_framing::old_4_frames;
  CHECK(render_version(engine) == R"({"version":"0.25.0"})");
  engine.kv_events.encoding = event_encoding::array;
  CHECK(render_version(engine) == R"({"version":"0.23.0"})");
}

TEST_CASE("settings are checked") {
  CHECK_FALSE(check(settings{}));
  const auto wrong = [](auto change) {
    settings values;
    change(values);
    const auto problem = check(values);
    return problem ? problem->detail.substr(0, problem->detail.find(':')) : std::string();
  };
  CHECK(wrong([](settings& s) { s.block_size = 0; }) == "block_size");
  CHECK(wrong([](settings& s) { s.total_blocks = 0; }) == "total_blocks");
  CHECK(wrong([](settings& s) { s.speed = 0; }) == "speed");
  CHECK(wrong([](settings& s) { s.max_num_batched_tokens = 1; }) == "max_num_batched_tokens");
  CHECK(wrong([](settings& s) { s.eos_probability = 2; }) == "eos_probability");
  settings small;
  small.total_blocks = 4;
  CHECK(context_length(small) == 64);
}
