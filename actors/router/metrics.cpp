#include "actors/router/metrics.hpp"

namespace infernex::router {

namespace {

prometheus::Counter& queue_shed(metrics_registry& r, const char* reason) {
  return r.counter("infernex_router_queue_shed_total", "Requests that were given no engine while all were saturated",
                   {{"reason", reason}});
}

}  // namespace

router_metrics::router_metrics(metrics_registry& r)
    : queries_refused(r.counter("infernex_router_queries_refused_total", "Queries over a bound of number or size")),
      decisions_unpublished(r.counter("infernex_router_decisions_unpublished_total",
                                      "Decisions answered, but not shown to watchers for lack of room")),
      decide_seconds(
          r.histogram("infernex_router_decide_seconds", "Deciding for one query, all its items", internal_buckets())),
      match_seconds(
          r.histogram("infernex_router_match_seconds", "Waiting for the indexer's answer", internal_buckets())),
      engines(r.gauge("infernex_router_engines", "Engines known")),
      engines_ready(r.gauge("infernex_router_engines_ready", "Engines that take requests")),
      engines_isolated(
          r.gauge("infernex_router_engines_isolated", "Engines left out by verdicts on their accelerators")),
      isolations_withheld(r.gauge("infernex_router_isolations_withheld",
                                  "Engines served on though a verdict says isolate: too many would be out")),
      in_flight(r.gauge("infernex_router_in_flight_requests",
                        "Requests at all engines, by gateways' totals and own "
                        "reservations")),
      reservations_open(r.gauge("infernex_router_reservations", "Decisions not yet in a gateway's totals")),
      facts_refused(r.counter("infernex_router_facts_refused_total", "Announcements and totals refused for a bound")),
      reservations_shed(
          r.counter("infernex_router_reservations_shed_total", "Reservations taken back early for their bound")),
      no_engine_(r.counter("infernex_router_no_engine_total", "Requests that no engine could take")),
      index_used_(r.counter("infernex_router_index_used_total", "Decisions in which the KV index took part")),
      by_prediction_(r.counter("infernex_router_decisions_by_prediction_total",
                               "Decisions for an engine that should cache more than the index knows")),
      predictions_(r.gauge("infernex_router_predicted_blocks", "Blocks predicted in engines' caches")),
      prediction_bytes_(r.gauge("infernex_router_prediction_bytes", "Memory of predictions")),
      predictions_evicted_(
          r.counter("infernex_router_predictions_evicted_total", "Predictions that made room for later ones")),
      predictions_expired_(
          r.counter("infernex_router_predictions_expired_total", "Predictions that outlived their time")),
      predictions_shed_(r.counter("infernex_router_predictions_shed_total",
                                  "Predictions that found no room, and requests they can no longer follow")),
      queue_length_(r.gauge("infernex_router_queue_length", "Requests that wait for an engine to have room")),
      queue_released_(r.counter("infernex_router_queue_released_total", "Requests that waited and got an engine")),
      queue_left_(r.counter("infernex_router_queue_left_total", "Requests whose clients left while they waited")),
      queue_full_(queue_shed(r, "full")),
      queue_sheddable_(queue_shed(r, "sheddable")),
      queue_too_long_(queue_shed(r, "waited_too_long")),
      queue_wait_(r.histogram("infernex_router_queue_wait_seconds", "Waiting for an engine, of those who got one",
                              request_buckets())),
      registry_(r) {}

void router_metrics::show(const request_queue& queue) {
  const auto& count = queue.count();
  queue_length_.Set(static_cast<double>(queue.waiting()));
  catch_up(queue_released_, static_cast<double>(count.released));
  catch_up(queue_left_, static_cast<double>(count.left));
  catch_up(queue_full_, static_cast<double>(count.full));
  catch_up(queue_sheddable_, static_cast<double>(count.sheddable));
  catch_up(queue_too_long_, static_cast<double>(count.too_long));
}

void router_metrics::count(const fb::RouteChoiceT& decided) {
  if (decided.queueing == fb::Queueing::Waiting || decided.queueing == fb::Queueing::Shed) return;
  if (decided.queueing == fb::Queueing::Released && decided.queued_ms) queue_wait_.Observe(*decided.queued_ms / 1'000);
  decisions(decided.strategy).Increment();
  if (decided.instance.empty()) no_engine_.Increment();
  if (decided.index_used) index_used_.Increment();
  if (decided.by_prediction) by_prediction_.Increment();
}

void router_metrics::show(const prediction_index::counters& predicted, const prediction_book& routed) {
  predictions_.Set(static_cast<double>(predicted.entries));
  prediction_bytes_.Set(static_cast<double>(predicted.bytes + routed.bytes()));
  catch_up(predictions_evicted_, static_cast<double>(predicted.evicted));
  catch_up(predictions_expired_, static_cast<double>(predicted.expired));
  catch_up(predictions_shed_, static_cast<double>(predicted.shed + routed.shed()));
}

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
