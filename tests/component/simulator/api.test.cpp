#include "tests/component/simulator/engine_fixture.hpp"

using namespace infernex;
using namespace infernex::test;

namespace {

void check_error(const reply& answer, unsigned status, std::string_view param = {}) {
  CHECK(answer.status == status);
  REQUIRE_FALSE(answer.body.empty());
  const auto problem = answer.parsed().at("error").as_object();
  CHECK_FALSE(text_of(problem.at("message")).empty());
  if (!param.empty()) CHECK(text_of(problem.at("param")) == param);
}

}  // namespace

TEST_CASE("bad requests get a clear error each, and disturb nothing") {
  const engine_fixture sim;
  check_error(sim.post_text("/v1/chat/completions", "{\"model\":"), 400);
  check_error(sim.post_text("/v1/chat/completions", "[]"), 400);
  check_error(sim.post_text("/v1/completions", "{\"prompt\": 7}"), 400, "prompt");
  check_error(sim.post_text("/v1/chat/completions", "{\"messages\": \"hi\"}"), 400, "messages");
  auto body = chat_body("hi", 5);
  body["temperature"] = "hot";
  check_error(sim.post("/v1/chat/completions", body), 400, "temperature");
  body = chat_body("hi", 5);
  body["model"] = "no/such";
  check_error(sim.post("/v1/chat/completions", body), 404, "model");
  check_error(sim.post("/v1/chat/completions", chat_body("hi", 1'000'000)), 400);
  check_error(sim.get("/v1/nothing"), 404);
  check_error(sim.get("/v1/chat/completions"), 405);
  check_error(sim.post_text("/v1/chat/completions", std::string(9 << 20, ' ')), 413);
  CHECK(sim.post("/v1/chat/completions", chat_body("hi", 5)).status == 200);
}

TEST_CASE("an engine that loads answers 503 everywhere, then serves") {
  auto values = engine_fixture::fast();
  values.load_time = std::chrono::hours(1);
  {
    const engine_fixture loading(values);
    check_error(loading.get("/health"), 503);
    check_error(loading.get("/v1/models"), 503);
    check_error(loading.post("/v1/chat/completions", chat_body("hi", 5)), 503);
  }
  values.load_time = std::chrono::milliseconds(100);
  const engine_fixture sim(values);
  CHECK(eventually([&sim] { return sim.get("/health").status == 200; }));
  CHECK(sim.post("/v1/chat/completions", chat_body("hi", 5)).status == 200);
}

TEST_CASE("models, version and health") {
  auto values = engine_fixture::fast();
  values.served_model_names = {"alias", "other"};
  const engine_fixture sim(values);
  const auto models = sim.get("/v1/models").parsed().at("data").as_array();
  REQUIRE(models.size() == 2);
  CHECK(models[0].at("id") == "alias");
  CHECK(models[0].at("root") == "sim/llama");
  CHECK(models[0].at("max_model_len") == 32'768);
  CHECK(sim.get("/version").parsed().at("version") == "0.26.0");
  CHECK(sim.get("/health").status == 200);
}

TEST_CASE("tokenize, detokenize and render agree with what the engine runs") {
  const engine_fixture sim;
  const auto chat = chat_body("What will you see?", 3);
  const auto tokenized = sim.post("/tokenize", {{"messages", chat.at("messages")}}).parsed().as_object();
  const auto rendered = sim.post("/v1/chat/completions/render", chat).parsed().as_object();
  CHECK(tokenized.at("tokens") == rendered.at("token_ids"));
  const auto used = sim.post("/v1/chat/completions", chat).parsed().at("usage").at("prompt_tokens");
  CHECK(tokenized.at("count").to_number<int>() == used.to_number<int>());
  CHECK(sim.post("/detokenize", {{"tokens", tokenized.at("tokens")}}).parsed().at("prompt") ==
        "<|user|>\nWhat will you see?<|end|>\n<|assistant|>\n");

  const auto texts = sim.post("/v1/completions/render", {{"prompt", {"one", "and two"}}}).parsed().as_array();
  REQUIRE(texts.size() == 2);
  CHECK(texts[1].at("token_ids") == sim.post("/tokenize", {{"prompt", "and two"}}).parsed().at("tokens"));
  check_error(sim.post("/tokenize", {}), 400, "prompt");
  check_error(sim.post("/v1/chat/completions/render", {}), 400, "messages");
}

TEST_CASE("an older engine has no render and no tokenize endpoints") {
  auto values = engine_fixture::fast();
  values.render_endpoints = false;
  values.tokenize_endpoints = false;
  const engine_fixture sim(values);
  check_error(sim.post("/v1/chat/completions/render", chat_body("x", 1)), 404);
  check_error(sim.post("/v1/completions/render", {{"prompt", "x"}}), 404);
  check_error(sim.post("/tokenize", {{"prompt", "x"}}), 404);
}

TEST_CASE("metrics carry vLLM's names and count what happened") {
  const engine_fixture sim;
  const auto body = chat_body("Count these tokens, every single one of them.", 10);
  const auto prompt =
      sim.post("/v1/chat/completions", body).parsed().at("usage").at("prompt_tokens").to_number<double>();
  REQUIRE(sim.post("/v1/chat/completions", body).status == 200);
  const auto page = sim.get("/metrics");
  CHECK(page.content_type.starts_with("text/plain"));
  CHECK(page.body.find("vllm:num_requests_waiting{engine=\"0\",model_name=\"sim/llama\"} 0") != std::string::npos);
  CHECK(page.body.find("vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",enable_prefix_caching=\"True\","
                       "engine=\"0\",model_name=\"sim/llama\",num_gpu_blocks=\"8192\"} 1") != std::string::npos);
  CHECK(sim.metric("vllm:prompt_tokens_total") == 2 * prompt);
  CHECK(sim.metric("vllm:generation_tokens_total") == 20);
  CHECK(sim.metric("vllm:prefix_cache_queries_total") == 2 * prompt);
  CHECK(sim.metric("vllm:prefix_cache_hits_total") == static_cast<int>(prompt - 1) / 16 * 16);
  CHECK(sim.metric("vllm:time_to_first_token_seconds_count") == 2);
  CHECK(sim.metric("vllm:inter_token_latency_seconds_count") == 18);
  CHECK(sim.metric("vllm:e2e_request_latency_seconds_count") == 2);
  CHECK(sim.metric("vllm:num_preemptions_total") == 0);
  INFO(page.body);
  CHECK(sim.metric("vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"sim/llama\"}") ==
        2);
  CHECK(sim.metric("process_start_time_seconds").value_or(0) > 1.7e9);
}

TEST_CASE("a first token takes the time the formulas say") {
  auto values = engine_fixture::fast();
  values.speed = 1;
  const engine_fixture sim(values);
  REQUIRE(sim.post("/v1/chat/completions", chat_body(std::string(6'000, 'a'), 1)).status == 200);  // 2,010 tokens
  const auto seconds = sim.metric("vllm:time_to_first_token_seconds_sum").value_or(0);
  CHECK(seconds >= 0.0485);
  CHECK(seconds < 0.5);
}

TEST_CASE("settings and addresses that cannot work are refused at the start") {
  const engine_fixture sim;
  metrics_registry metrics;
  auto values = engine_fixture::fast();
  values.port = sim.engine->port();
  auto second = simulator::start(metrics, values);
  REQUIRE_FALSE(second.ok());
  CHECK(second.failure().code == errc::system_error);
  values = engine_fixture::fast();
  values.kv_events.endpoint = sim.engine->kv_endpoint();
  CHECK_FALSE(simulator::start(metrics, values).ok());
  values = engine_fixture::fast();
  values.block_size = 0;
  second = simulator::start(metrics, values);
  REQUIRE_FALSE(second.ok());
  CHECK(second.failure().code == errc::invalid_config);
}
