#pragma once

#include <map>

#include "actors/runtime/metrics.hpp"
#include "gateway/settings.hpp"

namespace infernex::gateway {

/// The gateway's metrics; one object a thread, all of them over the process's same counters.
class gateway_metrics {
 public:
  explicit gateway_metrics(metrics_registry& registry);

  /// `infernex_gateway_requests_total{code}`; 499 is a client that left before its answer began.
  prometheus::Counter& requests(unsigned code);
  /// `infernex_gateway_tokenized_total{by}`: how prompts got their tokens (render, tokenize, text, given, cache).
  prometheus::Counter& tokenized(std::string_view by);

  prometheus::Histogram& ttft;
  prometheus::Histogram& duration;
  prometheus::Gauge& in_flight;
  prometheus::Counter& retries;
  prometheus::Counter& broken_streams;
  prometheus::Counter& client_gone;
  prometheus::Counter& route_fallbacks;
  /// Tokens of requests for which both are known: expected from cache, and taken from it by the engine.
  struct parity_counters {
    prometheus::Counter* predicted;
    prometheus::Counter* reported;
  };
  /// Expected by the index, and by prediction, which for prompts keyed by their text is an estimate.
  parity_counters parity[2];

 private:
  metrics_registry& registry_;
  std::map<unsigned, prometheus::Counter*> by_code_;
  std::map<std::string, prometheus::Counter*, std::less<>> by_way_;
};

struct gateway_facts;

/// What the actor shows of its facts.
class fact_metrics {
 public:
  explicit fact_metrics(metrics_registry& registry);
  void show(const gateway_facts& facts);

 private:
  prometheus::Counter& facts_refused_;
  prometheus::Counter& life_dropped_;
  prometheus::Counter& parity_evicted_;
  prometheus::Gauge& routers_;
  prometheus::Gauge& predictions_;
  prometheus::Gauge& prediction_bytes_;
  prometheus::Counter& predictions_evicted_;
  prometheus::Counter& predictions_expired_;
  prometheus::Counter& predictions_shed_;
};

}  // namespace infernex::gateway
