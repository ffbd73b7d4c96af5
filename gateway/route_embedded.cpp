#include "gateway/route_embedded.hpp"

#include "gateway/placing.hpp"

namespace infernex::gateway {
namespace {

class route_embedded final : public decider {
 public:
  route_embedded(gateway_shared& shared, std::shared_ptr<indexer::index_set> index)
      : shared_(shared), index_(std::move(index)), lookups_(*index_) {}

  http::task<choice> choose(const route_request& request, std::shared_ptr<const router::topology> topology,
                            waiter&) override {
    router::overlaps cached;
    found_.clear();
    if (request.keys.empty()) {
      cached.unknown_because = request.key_mode == fb::KeyMode::Token ? "the prompt is shorter than a block"
                                                                      : "the prompt's tokens are not known";
    } else if (const auto matches = lookups_.lookup(request.model, request.keys)) {
      for (const auto& m : *matches) found_.push_back({m.instance, m.blocks});
      cached.known = true;
      cached.found = found_;
    } else {
      cached.unknown_because = "the model is not indexed";
    }
    co_return place(request, topology ? topology->find(request.model) : nullptr, shared_.facts->fleet.board(), cached,
                    shared_.how.policy, turn_, std::chrono::steady_clock::now());
  }

 private:
  gateway_shared& shared_;
  std::shared_ptr<indexer::index_set> index_;
  indexer::index_set::reader lookups_;
  std::vector<router::overlap> found_;
  router::rotation turn_;
};

}  // namespace

std::unique_ptr<decider> make_route_embedded(gateway_shared& shared, std::shared_ptr<indexer::index_set> index) {
  return std::make_unique<route_embedded>(shared, std::move(index));
}

}  // namespace infernex::gateway
