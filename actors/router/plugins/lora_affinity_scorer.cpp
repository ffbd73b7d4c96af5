#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// 1 where the adapter is in the running batch, 0.8 where there is room for one more, 0.6 where it waits for room, else
/// 0. Of an engine that does not say (vLLM does once an adapter has been used): 1 if the adapter is loaded, else 0.
/// Requests for the base model find all engines alike.
class lora_affinity final : public scorer {
 public:
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto wanted = context.request.adapter;
    for (std::size_t i = 0; i < all.size(); ++i) out[i] = wanted.empty() ? 1.0 : grade(*all[i].to, wanted);
  }

 private:
  static double grade(const endpoint& e, std::string_view wanted) {
    if (!e.adapters_in_use) return std::find(e.adapters.begin(), e.adapters.end(), wanted) != e.adapters.end() ? 1 : 0;
    if (e.adapters_in_use->runs(wanted)) return 1.0;
    if (e.adapters_in_use->has_room()) return 0.8;
    return e.adapters_in_use->awaits(wanted) ? 0.6 : 0.0;
  }
};

}  // namespace

plugin_type lora_affinity_scorer() {
  return {"lora-affinity-scorer", "whether the request's adapter is in use at an engine, or can be",
          "Gateway API Inference Extension, scorer of that name",
          [](parameters&) -> plugin_type::made { return std::make_unique<lora_affinity>(); }};
}

}  // namespace infernex::router::plugins
