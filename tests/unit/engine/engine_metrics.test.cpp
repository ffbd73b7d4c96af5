#include "actors/engine/engine_metrics.hpp"

#include <doctest/doctest.h>

#include "actors/engine/prometheus_text.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;

engine_metrics read(std::string_view page) {
  auto metrics = read_metrics(page, default_metric_sources());
  REQUIRE(metrics.ok());
  return *std::move(metrics);
}

TEST_CASE("vLLM V1, two engines behind one port: sums, and the mean of the usage") {
  const auto m = read(R"(# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.9
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.7e+09
vllm:generation_tokens_total{engine="0",model_name="m"} 2e3
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 500.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 250.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1024"} 1.0
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="1",num_gpu_blocks="1024"} 1.0
process_start_time_seconds 1.76341000012e+09
)");
  CHECK(m.running == 7);
  CHECK(m.waiting == 1);
  CHECK(m.kv_usage == doctest::Approx(0.5));
  CHECK(m.prompt_tokens == 1000);
  CHECK(m.generation_tokens == 2000);
  CHECK(m.prefix_cache_queries == 500);
  CHECK(m.prefix_cache_hits == 250);
  CHECK(m.block_size == 16);
  CHECK(m.total_blocks == 2048);
  CHECK(m.process_start_seconds == doctest::Approx(1763410000.12));
  CHECK(m.bad_lines == 0);
}

TEST_CASE("one rank of several behind one port: its own series, and those without a rank") {
  const std::string_view page =
      "vllm:num_requests_running{engine=\"0\"} 3\n"
      "vllm:num_requests_running{engine=\"1\"} 4\n"
      "vllm:num_requests_running{engine=\"10\"} 5\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
      "vllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n"
      "vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"1024\"} 1\n"
      "process_start_time_seconds 1763410000\n";
  const auto one = read_metrics(page, default_metric_sources(), 1);
  REQUIRE(one.ok());
  CHECK(one->running == 4);
  CHECK(one->kv_usage == 0.75);
  CHECK(one->total_blocks == 1024);
  CHECK(one->process_start_seconds == 1763410000);
  const auto none = read_metrics(page, default_metric_sources(), 7);
  REQUIRE(none.ok());
  CHECK_FALSE(none->running.has_value());
  CHECK(none->process_start_seconds == 1763410000);
  const auto plain = read_metrics("vllm:num_requests_running 6\n", default_metric_sources(), 1);
  REQUIRE(plain.ok());
  CHECK(plain->running == 6);  // an engine that does not label ranks has one
}

TEST_CASE("preemptions, an external cache, sleep, and the adapters of the newest series") {
  const auto m = read(R"(vllm:num_preemptions_total{engine="0",model_name="m"} 12.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 640.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 64.0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} 0.0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="weights_offloaded"} 1.0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="discard_all"} 0.0
vllm:lora_requests_info{max_lora="4",running_lora_adapters="old",waiting_lora_adapters=""} 1.763410001e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="ada, sql",waiting_lora_adapters="x"} 1.763410003e+09
vllm:lora_requests_info{max_lora="4",running_lora_adapters="older",waiting_lora_adapters=""} 1.763410002e+09
)");
  CHECK(m.preemptions == 12);
  CHECK(m.external_cache_queries == 640);
  CHECK(m.external_cache_hits == 64);
  CHECK(m.sleep_state == sleep_state::weights_offloaded);
  CHECK(m.running_adapters == std::vector<std::string>{"ada", "sql"});
  CHECK(m.waiting_adapters == std::vector<std::string>{"x"});
  CHECK(m.max_adapters == 4);

  const auto awake = read(
      "vllm:engine_sleep_state{sleep_state=\"awake\"} 1\n"
      "vllm:engine_sleep_state{sleep_state=\"discard_all\"} 0\n"
      "vllm:engine_sleep_state{sleep_state=\"dreaming\"} 1\n");
  CHECK(awake.sleep_state == sleep_state::awake);
  CHECK_FALSE(awake.running_adapters.has_value());  // no adapter was ever used
  CHECK_FALSE(read("vllm:engine_sleep_state{sleep_state=\"awake\"} 0\n").sleep_state.has_value());
}

TEST_CASE("vLLM V0 names; what is not on the page is not known") {
  const auto m = read(
      "vllm:num_requests_running{model_name=\"m\"} 2\n"
      "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.125\n"
      "vllm:gpu_prefix_cache_hits_total{model_name=\"m\"} 5\n"
      "vllm:cpu_cache_usage_perc{model_name=\"m\"} 0.9\n"
      "vllm:num_requests_swapped{model_name=\"m\"} 3\n"
      "vllm:num_preemptions_total{model_name=\"m\"} 2\n"
      "vllm:prompt_tokens_total{model_name=\"m\"} 77\n");
  CHECK(m.running == 2);
  CHECK_FALSE(m.waiting.has_value());
  CHECK(m.kv_usage == 0.125);
  CHECK(m.prefix_cache_hits == 5);
  CHECK(m.preemptions == 2);
  CHECK(m.prompt_tokens == 77);
  CHECK_FALSE(m.sleep_state.has_value());
  CHECK_FALSE(m.block_size.has_value());
  CHECK_FALSE(m.process_start_seconds.has_value());
}

TEST_CASE("SGLang names") {
  const auto m = read(
      "sglang:num_running_reqs{model_name=\"m\"} 9\r\n"
      "sglang:num_queue_reqs{model_name=\"m\"} 4\r\n"
      "sglang:token_usage{model_name=\"m\"} 0.5\r\n"
      "sglang:cache_config_info{page_size=\"64\",num_pages=\"100\"} 1");
  CHECK(m.running == 9);
  CHECK(m.waiting == 4);
  CHECK(m.kv_usage == 0.5);
  CHECK(m.block_size == 64);
  CHECK(m.total_blocks == 100);
}

TEST_CASE("bad lines are counted and skipped, impossible values are unknown") {
  const auto m = read(
      "vllm:num_requests_running{model_name=\"un}closed 3\n"
      "<html>not metrics</html>\n"
      "vllm:num_requests_waiting\n"
      "vllm:num_requests_waiting twelve\n"
      "vllm:num_requests_running{model_name=\"a,}\\\"b\"} 5 1700000000000\n"
      "vllm:num_requests_waiting -1\n"
      "vllm:kv_cache_usage_perc NaN\n"
      "vllm:prompt_tokens_total 1e300\n"
      "vllm:cache_config_info{block_size=\"None\",num_gpu_blocks=\"10\"} 1\n");
  CHECK(m.bad_lines == 4);
  CHECK(m.running == 5);
  CHECK_FALSE(m.waiting.has_value());
  CHECK_FALSE(m.kv_usage.has_value());
  CHECK_FALSE(m.prompt_tokens.has_value());
  CHECK_FALSE(m.block_size.has_value());
  CHECK(m.total_blocks == 10);
  CHECK_FALSE(read_metrics(std::string(max_metrics_bytes + 1, '\n'), default_metric_sources()).ok());
}

TEST_CASE("which metrics are read can be chosen") {
  const std::vector<metric_source> own{{"my_running", metric_meaning::running, {}},
                                       {"my_info", metric_meaning::block_size, "bs"}};
  const auto m = read_metrics("my_running 3\nvllm:num_requests_running 8\nmy_info{bs = \"32\"} 1\n", own);
  REQUIRE(m.ok());
  CHECK(m->running == 3);
  CHECK(m->block_size == 32);
  CHECK(metric_meaning_of("kv_usage") == metric_meaning::kv_usage);
  CHECK(metric_meaning_of("total_blocks") == metric_meaning::total_blocks);
  CHECK(metric_meaning_of("max_adapters") == metric_meaning::max_adapters);
  CHECK(metric_meaning_of("sleep_state") == metric_meaning::sleep_state);
  CHECK_FALSE(metric_meaning_of("mood").has_value());
  // Text where no label is named cannot be read; it is no reason to fail.
  const auto odd = read_metrics("s 1\n", {{"s", metric_meaning::sleep_state, {}}});
  REQUIRE(odd.ok());
  CHECK_FALSE(odd->sleep_state.has_value());
}

TEST_CASE("labels are found among others and unescaped") {
  CHECK(find_label(R"(a="1", b="x\"y\\z\n",)", "b") == "x\"y\\z\n");
  CHECK_FALSE(find_label(R"(a="1")", "b").has_value());
  CHECK_FALSE(find_label(R"(a=1,b="2")", "b").has_value());
}

TEST_CASE("load: rates since the scrape before, none without one or after a counter's reset") {
  engine_metrics before;
  before.prompt_tokens = 100;
  before.generation_tokens = 500;
  engine_metrics now;
  now.running = 0;
  now.prompt_tokens = 300;
  now.generation_tokens = 20;
  const auto load = load_of(now, &before, 0.5);
  CHECK(load.running == 0U);
  CHECK_FALSE(load.waiting.has_value());
  CHECK(load.prompt_tokens_per_second == doctest::Approx(400));
  CHECK_FALSE(load.generation_tokens_per_second.has_value());
  CHECK_FALSE(load_of(now, nullptr, 0.5).prompt_tokens_per_second.has_value());
  CHECK_FALSE(load_of(now, &before, 0).prompt_tokens_per_second.has_value());
}

TEST_CASE("adapters in use go into the load message; names too long or too many do not") {
  engine_metrics m;
  m.running_adapters = std::vector<std::string>{"ada", std::string(513, 'x'), "sql"};
  m.waiting_adapters = std::vector<std::string>(300, "w");
  m.max_adapters = 4;
  const auto load = load_of(m, nullptr, 0);
  CHECK(load.adapters_running == std::vector<std::string>{"ada", "sql"});
  CHECK(load.adapters_waiting.size() == 256);
  CHECK(load.max_adapters == 4U);
  const auto silent = load_of({}, nullptr, 0);
  CHECK(silent.adapters_running.empty());
  CHECK_FALSE(silent.max_adapters.has_value());
}

}  // namespace
