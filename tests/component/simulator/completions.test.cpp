#include "tests/component/simulator/engine_fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

struct streamed {
  std::string text;
  std::string finish_reason;
  std::string first_role;
  std::optional<json::object> usage;
  bool done = false;
};

streamed read_stream(http_call&& call) {
  streamed all;
  bool first = true;
  while (const auto event = call.next_event()) {
    REQUIRE_FALSE(all.done);
    if (*event == "[DONE]") {
      all.done = true;
      continue;
    }
    const auto body = json::parse(*event).as_object();
    if (const auto* usage = body.if_contains("usage")) all.usage = usage->as_object();
    for (const auto& one : body.at("choices").as_array()) {
      if (const auto* delta = one.as_object().if_contains("delta")) {
        if (std::exchange(first, false)) all.first_role = text_of(delta->at("role"));
        if (const auto* content = delta->as_object().if_contains("content")) all.text += text_of(*content);
      } else {
        all.text += text_of(one.at("text"));
      }
      if (!one.at("finish_reason").is_null()) all.finish_reason = text_of(one.at("finish_reason"));
    }
  }
  return all;
}

std::string chat_text(const reply& answer) {
  REQUIRE(answer.status == 200);
  return text_of(answer.parsed().at("choices").at(0).at("message").at("content"));
}

}  // namespace

TEST_CASE("a chat answer, and the same prompt again from the cache") {
  const engine_fixture sim;
  const auto body = chat_body("Tell me a long story about a very small engine.", 20);
  const auto first = sim.post("/v1/chat/completions", body, "req-1");
  REQUIRE(first.status == 200);
  CHECK(first.content_type == "application/json");
  const auto answer = first.parsed().as_object();
  CHECK(answer.at("id") == "chatcmpl-req-1");
  CHECK(answer.at("model") == "sim/llama");
  CHECK(answer.at("choices").at(0).at("finish_reason") == "length");
  CHECK(chat_text(first).size() == 20 * 3);
  const auto prompt_tokens = answer.at("usage").at("prompt_tokens").to_number<int>();
  CHECK(prompt_tokens > 16);
  CHECK(answer.at("usage").at("completion_tokens") == 20);
  CHECK(answer.at("usage").at("prompt_tokens_details").at("cached_tokens") == 0);

  const auto again = sim.post("/v1/chat/completions", body);
  CHECK(chat_text(again) == chat_text(first));
  const auto cached = again.parsed().at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>();
  CHECK(cached == (prompt_tokens - 1) / 16 * 16);
}

TEST_CASE("a streamed chat answer says the same as a whole one, with its usage at the end") {
  const engine_fixture sim;
  auto body = chat_body("Stream this", 30);
  const auto whole = chat_text(sim.post("/v1/chat/completions", body));
  body["stream"] = true;
  const auto plain = read_stream(sim.open("POST", "/v1/chat/completions", json::serialize(body)));
  CHECK(plain.done);
  CHECK(plain.first_role == "assistant");
  CHECK(plain.text == whole);
  CHECK(plain.finish_reason == "length");
  CHECK_FALSE(plain.usage);
  body["stream_options"] = {{"include_usage", true}};
  const auto counted = read_stream(sim.open("POST", "/v1/chat/completions", json::serialize(body)));
  REQUIRE(counted.usage);
  CHECK(counted.usage->at("completion_tokens") == 30);
}

TEST_CASE("a continued request yields the text of the undisturbed one") {
  const engine_fixture sim;
  const auto whole = chat_text(sim.post("/v1/chat/completions", chat_body("Never stop", 40)));
  for (const std::size_t tokens : {1, 13, 39}) {
    auto rest = chat_body("Never stop", static_cast<int>(40 - tokens));
    rest.at("messages").as_array().push_back({{"role", "assistant"}, {"content", whole.substr(0, tokens * 3)}});
    rest["add_generation_prompt"] = false;
    rest["continue_final_message"] = true;
    CHECK(chat_text(sim.post("/v1/chat/completions", rest)) == whole.substr(tokens * 3));
  }

  const auto text = [&sim](std::string_view prompt, std::size_t tokens) {
    const auto answer = sim.post("/v1/completions", {{"prompt", json::string(prompt)}, {"max_tokens", tokens}});
    REQUIRE(answer.status == 200);
    return text_of(answer.parsed().at("choices").at(0).at("text"));
  };
  const auto plain = text("Once upon a time", 30);
  CHECK(text("Once upon a time" + plain.substr(0, 33), 19) == plain.substr(33));
}

TEST_CASE("a stop string across tokens ends the answer before it, whole and streamed") {
  const engine_fixture sim;
  auto body = chat_body("Stop somewhere", 40);
  const auto whole = chat_text(sim.post("/v1/chat/completions", body));
  const auto stop = whole.substr(31, 4);  // the end of one token, a whole one's start
  body["stop"] = json::array{"never to be seen", json::string(stop)};
  const auto answer = sim.post("/v1/chat/completions", body);
  const auto expected = whole.substr(0, whole.find(stop));
  CHECK(chat_text(answer) == expected);
  CHECK(answer.parsed().at("choices").at(0).at("finish_reason") == "stop");
  CHECK(answer.parsed().at("choices").at(0).at("stop_reason") == json::string(stop));
  CHECK(answer.parsed().at("usage").at("completion_tokens").to_number<std::size_t>() < 40);
  body["stream"] = true;
  const auto stream = read_stream(sim.open("POST", "/v1/chat/completions", json::serialize(body)));
  CHECK(stream.text == expected);
  CHECK(stream.finish_reason == "stop");
  CHECK(sim.becomes("vllm:num_requests_running", 0));
  CHECK(sim.becomes("vllm:kv_cache_usage_perc", 0));
}

TEST_CASE("several answers and several prompts, in order") {
  const engine_fixture sim;
  auto body = chat_body("Three, please", 8);
  const auto one = chat_text(sim.post("/v1/chat/completions", body));
  body["n"] = 3;
  const auto three = sim.post("/v1/chat/completions", body);
  REQUIRE(three.status == 200);
  const auto choices = three.parsed().at("choices").as_array();
  REQUIRE(choices.size() == 3);
  CHECK(text_of(choices[0].at("message").at("content")) == one);
  CHECK(choices[1].at("message").at("content") != choices[2].at("message").at("content"));
  CHECK(three.parsed().at("usage").at("completion_tokens") == 24);

  const auto lists =
      sim.post("/v1/completions", {{"prompt", {"first", "second"}}, {"n", 2}, {"max_tokens", 4}, {"echo", true}});
  REQUIRE(lists.status == 200);
  const auto texts = lists.parsed().at("choices").as_array();
  REQUIRE(texts.size() == 4);
  CHECK(text_of(texts[1].at("text")).starts_with("first "));
  CHECK(text_of(texts[2].at("text")).starts_with("second "));
  CHECK(texts[3].at("index") == 3);
}

TEST_CASE("echo mode repeats the user's text") {
  auto values = engine_fixture::fast();
  values.mode = simulator::generation_mode::echo;
  const engine_fixture sim(values);
  const auto answer = sim.post("/v1/chat/completions", chat_body("Grüße, 世界! 😀", 100));
  CHECK(chat_text(answer) == "Grüße, 世界! 😀");
  CHECK(answer.parsed().at("choices").at(0).at("finish_reason") == "stop");
}

TEST_CASE("a client that leaves frees its blocks, streaming or not") {
  auto values = engine_fixture::fast();
  values.speed = 1;
  const engine_fixture sim(values);
  double aborted = 0;
  for (const bool stream : {true, false}) {
    auto body = chat_body("Go on for ever", 4'000);
    body["stream"] = stream;
    body["n"] = 2;
    auto call = sim.open("POST", "/v1/chat/completions", json::serialize(body));
    if (stream) REQUIRE(call.next_event());
    REQUIRE(sim.becomes("vllm:num_requests_running", 2));
    CHECK(sim.metric("vllm:kv_cache_usage_perc").value_or(0) > 0);
    call.close();
    CHECK(sim.becomes("vllm:num_requests_running", 0));
    CHECK(sim.becomes("vllm:kv_cache_usage_perc", 0));
    aborted += 2;
    CHECK(sim.becomes("vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"sim/llama\"}",
                      aborted));
  }
}

TEST_CASE("a request that finds no memory waits for it") {
  auto values = engine_fixture::fast();
  values.total_blocks = 20;  // 320 tokens
  values.speed = 20;
  const engine_fixture sim(values);
  auto body = chat_body(std::string(600, 'a'), 60);  // about 210 tokens of prompt
  auto first = sim.open("POST", "/v1/chat/completions", json::serialize(body));
  REQUIRE(sim.becomes("vllm:num_requests_running", 1));
  auto second = sim.open("POST", "/v1/chat/completions", json::serialize(chat_body(std::string(600, 'b'), 60)));
  REQUIRE(sim.becomes("vllm:num_requests_waiting", 1));
  CHECK(first.finish().status == 200);
  CHECK(second.finish().status == 200);
  CHECK(sim.post("/v1/chat/completions", chat_body("too much", 1'000)).status == 400);
}

TEST_CASE("over its bound of waiting requests the engine says so") {
  auto values = engine_fixture::fast();
  values.speed = 1;
  values.max_num_seqs = 1;
  values.max_waiting = 0;
  const engine_fixture sim(values);
  auto body = chat_body("Busy", 4'000);
  auto running = sim.open("POST", "/v1/chat/completions", json::serialize(body));
  REQUIRE(sim.becomes("vllm:num_requests_running", 1));
  const auto refused = sim.post("/v1/chat/completions", body);
  CHECK(refused.status == 429);
  CHECK(refused.parsed().at("error").at("code") == 429);
  running.close();
  CHECK(sim.becomes("vllm:num_requests_running", 0));
}

TEST_CASE("a client that does not read holds nobody up") {
  const engine_fixture sim;
  auto body = chat_body("Much text", 20'000);
  body["stream"] = true;
  auto sleeper = sim.open("POST", "/v1/chat/completions", json::serialize(body));
  REQUIRE(sim.becomes("vllm:num_requests_running", 1));
  CHECK(chat_text(sim.post("/v1/chat/completions", chat_body("Quick", 50))).size() == 150);
  const auto all = read_stream(std::move(sleeper));
  CHECK(all.done);
  CHECK(all.text.size() == 60'000);
}

TEST_CASE("an engine that stops lets what runs come to its end within the deadline") {
  auto values = engine_fixture::fast();
  values.speed = 5;
  engine_fixture sim(values);
  auto short_call = sim.open("POST", "/v1/chat/completions", json::serialize(chat_body("Finish me", 50)));
  REQUIRE(sim.becomes("vllm:num_requests_running", 1));
  sim.engine->stop(std::chrono::seconds(10));
  CHECK(short_call.finish().status == 200);

  engine_fixture other(values);
  auto endless = chat_body("Cut me off", 30'000);
  endless["stream"] = true;
  auto long_call = other.open("POST", "/v1/chat/completions", json::serialize(endless));
  REQUIRE(other.becomes("vllm:num_requests_running", 1));
  other.engine->stop(std::chrono::milliseconds(50));
  CHECK_THROWS_AS(while (long_call.next_event()){}, boost::system::system_error);
}
