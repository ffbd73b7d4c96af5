#include "actors/router/metrics.hpp"

namespace infernex::router {

router_metrics::router_metrics(metrics_registry& r)
    : no_engine(r.counter("infernex_router_no_engine_total", "Requests that no engine could take")),
      index_used(r.counter("infernex_router_index_used_total", "Decisions in which the KV index took part")),
      queries_refused(r.counter("infernex_router_queries_refused_total", "Queries over a bound of number or size")),
      decisions_unpublished(r.counter("infernex_router_decisions_unpublished_total",
                                      "Decisions answered, but not shown to watchers for lack of room")),
      decide_seconds(
          r.histogram("infernex_router_decide_seconds", "Deciding for one query, all its items", internal_buckets())),
      match_seconds(
          r.histogram("infernex_router_match_seconds", "Waiting for the indexer's answer", internal_buckets())),
      engines(r.gauge("infernex_router_engines", "Engines known")),
      engines_ready(r.gauge("infernex_router_engines_ready", "Engines that take requests")),
      reservations_open(r.gauge("infernex_router_reservations", "Decisions not yet in a gateway's totals")),
      facts_refused(r.counter("infernex_router_facts_refused_total", "Announcements and totals refused for a bound")),
      reservations_shed(
          r.counter("infernex_router_reservations_shed_total", "Reservations taken back early for their bound")),
      registry_(r) {}

prometheus::Counter& router_metrics::decisions(const std::string& strategy) {
  auto& counter = by_strategy_[strategy];
  if (!counter)
    counter = &registry_.counter("infernex_router_decisions_total", "Requests decided", {{"strategy", strategy}});
  return *counter;
}

prometheus::Counter& router_metrics::match_failures(errc why) {
  auto& counter = by_failure_[why];
  if (!counter)
    counter = &registry_.counter("infernex_router_match_failures_total", "Questions the indexer did not answer",
                                 {{"error", std::string(name(why))}});
  return *counter;
}

}  // namespace infernex::router
