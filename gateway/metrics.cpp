#include "gateway/metrics.hpp"

#include "gateway/actor.hpp"

namespace infernex::gateway {

namespace {

gateway_metrics::parity_counters parity_of(metrics_registry& registry, const char* by) {
  const metrics_registry::labels how{{"by", by}};
  return {&registry.counter("infernex_gateway_predicted_cached_tokens_total",
                            "Prompt tokens expected in the engine's cache, by what they were expected by", how),
          &registry.counter("infernex_gateway_cached_tokens_total",
                            "Prompt tokens the engine reported as cached, of the same requests", how)};
}

}  // namespace

gateway_metrics::gateway_metrics(metrics_registry& registry)
    : ttft(registry.histogram("infernex_gateway_ttft_seconds",
                              "From a streaming request's first byte to its first token", request_buckets())),
      duration(registry.histogram("infernex_gateway_request_duration_seconds",
                                  "From a request's first byte to its answer's last", request_buckets())),
      in_flight(registry.gauge("infernex_gateway_in_flight_requests", "Requests being answered")),
      retries(registry.counter("infernex_gateway_retries_total", "Requests given to another engine after a failure")),
      broken_streams(registry.counter("infernex_gateway_broken_streams_total",
                                      "Streams that ended in an error event because their engine failed")),
      client_gone(
          registry.counter("infernex_gateway_client_gone_total", "Clients that left before their answer's end")),
      route_fallbacks(registry.counter("infernex_gateway_route_fallbacks_total",
                                       "Requests placed by load only for lack of a router's answer")),
      parity{parity_of(registry, "index"), parity_of(registry, "prediction")},
      registry_(registry) {}

prometheus::Counter& gateway_metrics::requests(unsigned code) {
  auto& known = by_code_[code];
  if (!known) {
    known = &registry_.counter("infernex_gateway_requests_total", "Chat and completions requests by status code",
                               {{"code", std::to_string(code)}});
  }
  return *known;
}

prometheus::Counter& gateway_metrics::tokenized(std::string_view by) {
  if (const auto found = by_way_.find(by); found != by_way_.end()) return *found->second;
  auto& made = registry_.counter("infernex_gateway_tokenized_total", "Prompts by how their tokens were found",
                                 {{"by", std::string(by)}});
  by_way_.emplace(by, &made);
  return made;
}

fact_metrics::fact_metrics(metrics_registry& registry)
    : facts_refused_(
          registry.counter("infernex_gateway_facts_refused_total", "Announcements and totals refused for a bound")),
      life_dropped_(registry.counter("infernex_gateway_life_dropped_total",
                                     "Records and changes left out of life messages for a bound")),
      parity_evicted_(registry.counter("infernex_gateway_parity_evicted_total",
                                       "Engines whose cached tokens' drift was forgotten for a bound")),
      routers_(registry.gauge("infernex_gateway_routers", "Routers that can be asked by name")),
      predictions_(registry.gauge("infernex_gateway_predicted_blocks", "Blocks predicted in engines' caches")),
      prediction_bytes_(registry.gauge("infernex_gateway_prediction_bytes", "Memory of predictions")),
      predictions_evicted_(
          registry.counter("infernex_gateway_predictions_evicted_total", "Predictions that made room for later ones")),
      predictions_expired_(
          registry.counter("infernex_gateway_predictions_expired_total", "Predictions that outlived their time")),
      predictions_shed_(registry.counter("infernex_gateway_predictions_shed_total",
                                         "Predictions that found no room, and requests they can no longer follow")) {}

void fact_metrics::show(const gateway_facts& facts) {
  catch_up(facts_refused_,
           static_cast<double>(facts.fleet.refused() + facts.routers.refused() + facts.pd_groups.refused()));
  catch_up(life_dropped_, static_cast<double>(facts.requests.dropped() + facts.inbox.dropped()));
  catch_up(parity_evicted_, static_cast<double>(facts.cached_tokens.evicted()));
  routers_.Set(static_cast<double>(facts.routers.size()));
  const auto count = facts.predicted.count();
  predictions_.Set(static_cast<double>(count.entries));
  prediction_bytes_.Set(static_cast<double>(count.bytes + facts.routed.bytes()));
  catch_up(predictions_evicted_, static_cast<double>(count.evicted));
  catch_up(predictions_expired_, static_cast<double>(count.expired));
  catch_up(predictions_shed_, static_cast<double>(count.shed + facts.routed.shed()));
}

}  // namespace infernex::gateway
