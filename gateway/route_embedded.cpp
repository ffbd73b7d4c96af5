#include "gateway/route_embedded.hpp"

#include "gateway/placing.hpp"

namespace infernex::gateway {
namespace {

class route_embedded final : public decider {
 public:
  route_embedded(gateway_shared& shared, std::shared_ptr<indexer::index_set> index)
      : shared_(shared),
        index_(std::move(index)),
        lookups_(*index_),
        predictions_(shared.facts->predicted),
        scheduler_(router::make_scheduler(router::spec_of(shared.how.policy))),
        predicts_(shared.how.prediction.enabled && scheduler_->uses_cache()),
        by_prediction_(shared.process.metrics.counter(
            "infernex_gateway_decisions_by_prediction_total",
            "Decisions taken here for an engine that should cache more than the index knows")) {}

  http::task<choice> choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                            waiter&) override {
    router::overlaps cached;
    if (request.keys.empty()) {
      cached.unknown_because = request.key_mode == fb::KeyMode::Token ? "the prompt is shorter than a block"
                                                                      : "the prompt's tokens are not known";
    } else if (request.key_mode == fb::KeyMode::Text) {
      cached.unknown_because = "keys of text are not indexed";
    } else if (const auto matches = lookups_.lookup(request.model, request.keys)) {
      cached.known = true;
      cached.found = *matches;
    } else {
      cached.unknown_because = "the model is not indexed";
    }
    if (predicts_) cached.predicted = predictions_.lookup(request.model, request.key_mode, request.keys);
    auto chosen = place(request, topology ? topology->find(request.model) : nullptr, shared_.facts->fleet.board(),
                        cached, *scheduler_, std::chrono::steady_clock::now());
    if (!chosen.ranked.empty() && chosen.ranked.front().by_prediction) by_prediction_.Increment();
    co_return chosen;
  }

 private:
  gateway_shared& shared_;
  std::shared_ptr<indexer::index_set> index_;
  indexer::index_set::reader lookups_;
  router::prediction_index::reader predictions_;
  std::unique_ptr<router::scheduler> scheduler_;
  bool predicts_;
  prometheus::Counter& by_prediction_;
};

}  // namespace

std::unique_ptr<decider> make_route_embedded(gateway_shared& shared, std::shared_ptr<indexer::index_set> index) {
  return std::make_unique<route_embedded>(shared, std::move(index));
}

}  // namespace infernex::gateway
