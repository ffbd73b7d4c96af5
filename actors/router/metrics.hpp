#pragma once

#include <map>
#include <string>

#include "actors/router/prediction_book.hpp"
#include "actors/router/request_queue.hpp"
#include "actors/runtime/metrics.hpp"
#include "messages/errc.hpp"

namespace infernex::router {

/// `infernex_router_…`.
class router_metrics {
 public:
  explicit router_metrics(metrics_registry& registry);

  void count(const fb::RouteChoiceT& decided);
  void show(const prediction_index::counters& predicted, const prediction_book& routed);
  void show(const request_queue& queue);
  prometheus::Counter& match_failures(errc why);

  prometheus::Counter& queries_refused;
  prometheus::Counter& decisions_unpublished;
  prometheus::Histogram& decide_seconds;
  prometheus::Histogram& match_seconds;
  prometheus::Gauge& engines;
  prometheus::Gauge& engines_ready;
  prometheus::Gauge& engines_isolated;
  prometheus::Gauge& isolations_withheld;
  prometheus::Gauge& in_flight;
  prometheus::Gauge& reservations_open;
  prometheus::Counter& facts_refused;
  prometheus::Counter& reservations_shed;

 private:
  prometheus::Counter& decisions(const std::string& strategy);

  prometheus::Counter& no_engine_;
  prometheus::Counter& index_used_;
  prometheus::Counter& by_prediction_;
  prometheus::Gauge& predictions_;
  prometheus::Gauge& prediction_bytes_;
  prometheus::Counter& predictions_evicted_;
  prometheus::Counter& predictions_expired_;
  prometheus::Counter& predictions_shed_;
  prometheus::Gauge& queue_length_;
  prometheus::Counter& queue_released_;
  prometheus::Counter& queue_left_;
  prometheus::Counter& queue_full_;
  prometheus::Counter& queue_sheddable_;
  prometheus::Counter& queue_too_long_;
  prometheus::Histogram& queue_wait_;
  metrics_registry& registry_;
  std::map<std::string, prometheus::Counter*> by_strategy_;
  std::map<errc, prometheus::Counter*> by_failure_;
};

}  // namespace infernex::router
