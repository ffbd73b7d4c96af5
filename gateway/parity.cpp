#include "gateway/parity.hpp"

#include "actors/runtime/log.hpp"

namespace infernex::gateway {
namespace {

/// Engines with counters of their own; the others share one pair.
constexpr std::size_t max_instances = 1024;

std::string_view source(bool by_prediction) { return by_prediction ? "prediction" : "index"; }

void tell(std::string_view instance, bool by_prediction, const parity_drift::notice& what) {
  static log::limiter lines(std::chrono::seconds(1));
  const auto repeated = lines.admit();
  if (repeated == 0) return;
  log::write(what.drifting ? log::level::warn : log::level::info,
             what.drifting ? "cached tokens are not what was expected" : "cached tokens are as expected again",
             {{"instance", instance},
              {"by", source(by_prediction)},
              {"predicted", what.predicted},
              {"reported", what.reported},
              {"requests", what.requests},
              {"error", what.error},
              {"repeated", repeated}});
}

}  // namespace

parity::counters& parity::of(const std::string& instance, bool by_prediction) {
  auto& known = by_instance_[by_prediction ? 1 : 0];
  auto found = known.find(instance);
  if (found != known.end()) return found->second;
  const std::string label = known.size() < max_instances ? instance : "other";
  const metrics_registry::labels labels{{"instance", label}, {"by", std::string(source(by_prediction))}};
  auto& made = known[label];
  made.predicted =
      &registry_.counter("infernex_gateway_instance_predicted_cached_tokens_total",
                         "Prompt tokens expected in this engine's cache, by what they were expected by", labels);
  made.reported = &registry_.counter("infernex_gateway_instance_cached_tokens_total",
                                     "Prompt tokens this engine reported as cached, of the same requests", labels);
  return made;
}

void parity::note(const life_finish& finished) {
  const auto& record = finished.record;
  if (!record.predicted_cached_tokens || !record.cached_tokens || record.instance.empty()) return;
  auto& count = of(record.instance, finished.by_prediction);
  count.predicted->Increment(*record.predicted_cached_tokens);
  count.reported->Increment(*record.cached_tokens);
  if (const auto news = drift_[finished.by_prediction ? 1 : 0].note(record.instance, *record.predicted_cached_tokens,
                                                                    *record.cached_tokens))
    tell(record.instance, finished.by_prediction, *news);
}

}  // namespace infernex::gateway
