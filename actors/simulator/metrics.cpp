#include "actors/simulator/metrics.hpp"

#include <string>

namespace infernex::simulator {

namespace {

const std::vector<double> first_token_buckets{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                              1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const std::vector<double> inter_token_buckets{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                              0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const std::vector<double> request_seconds_buckets{0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                                  30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};

metrics_registry::labels labels_of(const settings& engine) {
  return {{"model_name", served_name(engine)}, {"engine", "0"}};
}

metrics_registry::labels labels_of(const settings& engine, std::string key, std::string value) {
  auto labels = labels_of(engine);
  labels.emplace(std::move(key), std::move(value));
  return labels;
}

}  // namespace

engine_metrics::engine_metrics(metrics_registry& registry, const settings& engine)
    : running_(registry.gauge("vllm:num_requests_running", "Sequences in execution", labels_of(engine))),
      waiting_(
          registry.gauge("vllm:num_requests_waiting", "Sequences waiting for memory or a slot", labels_of(engine))),
      kv_usage_(registry.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1", labels_of(engine))),
      prefix_queries_(registry.counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache",
                                       labels_of(engine))),
      prefix_hits_(
          registry.counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache", labels_of(engine))),
      preemptions_(
          registry.counter("vllm:num_preemptions_total", "Sequences that gave up their blocks", labels_of(engine))),
      external_queries_(registry.counter("vllm:external_prefix_cache_queries_total", "Tokens asked of other engines",
                                         labels_of(engine))),
      external_hits_(registry.counter("vllm:external_prefix_cache_hits_total", "Tokens whose KV other engines sent",
                                      labels_of(engine))),
      prompt_tokens_(registry.counter("vllm:prompt_tokens_total", "Prompt tokens processed", labels_of(engine))),
      generation_tokens_(registry.counter("vllm:generation_tokens_total", "Tokens generated", labels_of(engine))),
      first_token_seconds_(registry.histogram("vllm:time_to_first_token_seconds", "Arrival to first token",
                                              first_token_buckets, labels_of(engine))),
      inter_token_seconds_(registry.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a sequence",
                                              inter_token_buckets, labels_of(engine))),
      request_seconds_(registry.histogram("vllm:e2e_request_latency_seconds", "Arrival to last token",
                                          request_seconds_buckets, labels_of(engine))),
      started_(registry.gauge("process_start_time_seconds", "Start of the process since 1970")) {
  const std::array<const char*, 3> reasons{"stop", "length", "abort"};
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    ended_[i] = &registry.counter("vllm:request_success_total", "Sequences ended",
                                  labels_of(engine, "finished_reason", reasons[i]));
  }
  auto config = labels_of(engine, "block_size", std::to_string(engine.block_size));
  config.emplace("num_gpu_blocks", std::to_string(engine.total_blocks));
  config.emplace("cache_dtype", "auto");
  config.emplace("enable_prefix_caching", "True");
  registry.gauge("vllm:cache_config_info", "The KV cache's configuration", config).Set(1);
}

void engine_metrics::begins() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  started_.Set(now.count());
  told_ = {};
}

void engine_metrics::load(const engine_load& now) {
  running_.Set(now.running);
  waiting_.Set(now.waiting);
  kv_usage_.Set(now.kv_usage);
  const auto grow = [](prometheus::Counter& counter, std::uint64_t told, std::uint64_t total) {
    if (total > told) counter.Increment(static_cast<double>(total - told));
  };
  grow(prefix_queries_, told_.prefix_queries, now.prefix_queries);
  grow(prefix_hits_, told_.prefix_hits, now.prefix_hits);
  grow(preemptions_, told_.preemptions, now.preemptions);
  grow(external_queries_, told_.external_queries, now.external_queries);
  grow(external_hits_, told_.external_hits, now.external_hits);
  told_ = now;
}

void engine_metrics::first_token(std::uint32_t prompt_tokens, std::chrono::duration<double> since_arrival) {
  prompt_tokens_.Increment(prompt_tokens);
  generation_tokens_.Increment();
  first_token_seconds_.Observe(since_arrival.count());
}

void engine_metrics::next_token(std::chrono::duration<double> since_previous) {
  generation_tokens_.Increment();
  inter_token_seconds_.Observe(since_previous.count());
}

void engine_metrics::ended(end_reason why, std::chrono::duration<double> since_arrival) {
  ended_[static_cast<std::size_t>(why)]->Increment();
  request_seconds_.Observe(since_arrival.count());
}

}  // namespace infernex::simulator
