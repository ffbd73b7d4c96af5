#pragma once

#include <map>
#include <string>

#include "actors/runtime/metrics.hpp"
#include "messages/errc.hpp"

namespace infernex::router {

/// `infernex_router_…`.
class router_metrics {
 public:
  explicit router_metrics(metrics_registry& registry);

  prometheus::Counter& decisions(const std::string& strategy);
  prometheus::Counter& match_failures(errc why);

  prometheus::Counter& no_engine;
  prometheus::Counter& index_used;
  prometheus::Counter& queries_refused;
  prometheus::Counter& decisions_unpublished;
  prometheus::Histogram& decide_seconds;
  prometheus::Histogram& match_seconds;
  prometheus::Gauge& engines;
  prometheus::Gauge& engines_ready;
  prometheus::Gauge& reservations_open;
  prometheus::Counter& facts_refused;
  prometheus::Counter& reservations_shed;

 private:
  metrics_registry& registry_;
  std::map<std::string, prometheus::Counter*> by_strategy_;
  std::map<errc, prometheus::Counter*> by_failure_;
};

}  // namespace infernex::router
