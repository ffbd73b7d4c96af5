#include "gateway/route_embedded.hpp"

#include <random>

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
        how_(shared.how.policy),
        newest_(shared.newest_policy),
        scheduler_(router::make_scheduler(router::spec_of(how_), std::random_device{}())),
        by_prediction_(shared.process.metrics.counter(
            "infernex_gateway_decisions_by_prediction_total",
            "Decisions taken here for an engine that should cache more than the index knows")) {}

  http::task<choice> choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                            waiter&) override {
    follow_policy();
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
    if (predicts()) cached.predicted = predictions_.lookup(request.model, request.key_mode, request.keys);
    auto chosen = place(request, topology ? topology->find(request.model) : nullptr, shared_.facts->fleet.board(),
                        cached, *scheduler_, std::chrono::steady_clock::now());
    if (!chosen.ranked.empty() && chosen.ranked.front().by_prediction) by_prediction_.Increment();
    co_return chosen;
  }

  bool predicts() const override { return shared_.how.prediction.enabled && scheduler_->uses_cache(); }

 private:
  /// Takes over a policy that was read anew since the last decision: one atomic load where there is none.
  void follow_policy() {
    const auto* newest = newest_.get();
    if (newest == in_use_) return;
    in_use_ = newest;
    how_.config = *newest;
    scheduler_ = router::make_scheduler(router::spec_of(how_), std::random_device{}());
  }

  gateway_shared& shared_;
  std::shared_ptr<indexer::index_set> index_;
  indexer::index_set::reader lookups_;
  router::prediction_index::reader predictions_;
  router::policy how_;
  published<router::scheduler_spec>::reader newest_;
  const router::scheduler_spec* in_use_ = nullptr;
  std::unique_ptr<router::scheduler> scheduler_;
  prometheus::Counter& by_prediction_;
};

}  // namespace

std::unique_ptr<decider> make_route_embedded(gateway_shared& shared, std::shared_ptr<indexer::index_set> index) {
  return std::make_unique<route_embedded>(shared, std::move(index));
}

}  // namespace infernex::gateway
