#include "actors/proxy/metrics_merge.hpp"

#include <doctest/doctest.h>

using namespace infernex::proxy;

TEST_CASE("counters, gauges and histograms add up, shares are averaged, infos stay") {
  const auto page = [](const std::string& running, const std::string& share, const std::string& count) {
    return "# HELP vllm:num_requests_running Running.\n# TYPE vllm:num_requests_running gauge\n"
           "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} " +
           running + "\n# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine=\"0\"} " + share +
           "\n# TYPE vllm:e2e histogram\nvllm:e2e_bucket{le=\"+Inf\"} " + count + "\nvllm:e2e_count " + count +
           "\nvllm:e2e_sum 0.5\n# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\"} 1\n"
           "python_gc_objects 7\nvllm:bad{x=\"\nvllm:worse x\n";
  };
  metrics_merge m;
  m.add(page("2", "0.25", "3"));
  m.add(page("5", "0.75", "4"));
  CHECK(m.render() ==
        "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\"} 1\n"
        "# TYPE vllm:e2e histogram\nvllm:e2e_bucket{le=\"+Inf\"} 7\nvllm:e2e_count 7\nvllm:e2e_sum 1\n"
        "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n"
        "# HELP vllm:num_requests_running Running.\n# TYPE vllm:num_requests_running gauge\n"
        "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 7\n");
}

TEST_CASE("the number of series is bounded") {
  metrics_merge m(2);
  m.add("v:a{x=\"1\"} 1\nv:a{x=\"2\"} 1\nv:a{x=\"3\"} 1\nv:a{x=\"1\"} 1\n");
  CHECK(m.refused() == 1);
  CHECK(m.render() == "v:a{x=\"1\"} 2\nv:a{x=\"2\"} 1\n");
}

TEST_CASE("the number of families is bounded, whether samples or comments name them") {
  metrics_merge m(2);
  m.add("# TYPE v:a gauge\n# TYPE v:b gauge\n# TYPE v:c gauge\n# HELP v:a text\nv:d 1\nv:a 1\n");
  CHECK(m.refused() == 2);
  CHECK(m.render() == "# TYPE v:a gauge\n# HELP v:a text\nv:a 1\n");
}
