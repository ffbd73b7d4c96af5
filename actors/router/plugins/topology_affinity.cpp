#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/endpoint_words.hpp"

namespace infernex::router::plugins {
namespace {

void read_common(parameters& p) {
  p.ignore("topologyProducerName", "labels and the announced node are looked at")
      .ignore("peerTopologyHeader", "the other leg's engine is chosen by the same router");
}

/// How near an engine is to the other leg's: by the bandwidth there usually is between two that share a host, a rack, …
class topology_score final : public scorer {
 public:
  explicit topology_score(parameters& p) { read_common(p); }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    constexpr std::array<double, 5> worth{1.0, 0.2, 0.05, 0.02, 0.0};
    for (std::size_t i = 0; i < all.size(); ++i)
      out[i] = context.partner ? worth[nearest_common_level(*context.partner->to, *all[i].to)] : 0.0;
  }
};

/// A preference: where nobody is near enough, everybody stays.
class topology_near final : public filter {
 public:
  explicit topology_near(parameters& p) {
    p.read_choice("minAffinity", farthest_, {topology_levels.begin(), topology_levels.end()},
                  "how near to the other leg's engine");
    read_common(p);
  }
  void apply(const decision_context& context, std::vector<candidate>& kept) override {
    if (!context.partner) return;
    const auto far = [&](const candidate& c) { return nearest_common_level(*context.partner->to, *c.to) > farthest_; };
    if (!std::all_of(kept.begin(), kept.end(), far)) std::erase_if(kept, far);
  }

 private:
  std::size_t farthest_ = 0;
};

}  // namespace

plugin_type topology_affinity_scorer() {
  return {"topology-affinity-scorer", "near the other leg's engine: host 1, rack 0.2, zone 0.05, region 0.02",
          "llm-d router", [](parameters& p) -> plugin_type::made { return std::make_unique<topology_score>(p); }};
}

plugin_type topology_affinity_filter() {
  return {"topology-affinity-filter", "only engines near the other leg's, if there are any", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<topology_near>(p); }};
}

}  // namespace infernex::router::plugins
