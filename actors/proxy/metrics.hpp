#pragma once

#include "actors/runtime/metrics.hpp"

namespace infernex::proxy {

/// How a request has ended.
enum class outcome : std::uint8_t { answered, failed, refused, client_gone };

/// The metrics of exchanges; shared by all threads of a process.
struct exchange_metrics {
  explicit exchange_metrics(metrics_registry& registry);

  /// `infernex_proxy_requests_total{outcome}`.
  prometheus::Counter& requests(outcome how) { return *requests_[static_cast<std::size_t>(how)]; }

  prometheus::Counter& retries;
  prometheus::Counter& local_prefills;
  prometheus::Counter& migrations;
  prometheus::Counter& recomputed;
  prometheus::Counter& releases;
  prometheus::Histogram& ttft;
  /// Of streams answered by the first pair, without their two legs' own time.
  prometheus::Histogram& added_ttft;
  prometheus::Histogram& prefill_seconds;

 private:
  prometheus::Counter* requests_[4];
};

}  // namespace infernex::proxy
