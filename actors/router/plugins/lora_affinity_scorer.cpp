#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// 1 where the adapter is loaded. Engines do not say how many more they could load, so that the middle grades of the
/// original (0.8: room for it, 0.6: in its queue) never apply, as with it where an engine states no capacity.
class lora_affinity final : public scorer {
 public:
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto wanted = context.request.adapter;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& loaded = all[i].to->adapters;
      out[i] = wanted.empty() || std::find(loaded.begin(), loaded.end(), wanted) != loaded.end() ? 1.0 : 0.0;
    }
  }
};

}  // namespace

plugin_type lora_affinity_scorer() {
  return {"lora-affinity-scorer", "whether the request's adapter is loaded",
          "Gateway API Inference Extension, scorer of that name",
          [](parameters&) -> plugin_type::made { return std::make_unique<lora_affinity>(); }};
}

}  // namespace infernex::router::plugins
