#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// A cost, least is best: w1 * (1 - cached share of the prompt) + w2 * KV usage + w3 * requests waiting (their number,
/// not a share). Where prefill and decode are apart, a decode engine gets the KV blocks from the other: no first term.
class kv_cost final : public scorer {
 public:
  kv_cost(parameters& p, bool disaggregated) : disaggregated_(disaggregated) {
    p.read("kvCacheHitNotRateWeight", miss_, 0, 1e6, "weight of the share that is not cached")
        .read("xpuCacheUsageWeight", usage_, 0, 1e6, "weight of the used share of KV blocks")
        .read("waitingRequestWeight", waiting_, 0, 1e6, "weight of each waiting request");
    for (const auto name : {"kvCacheManagerIP", "kvCacheManagerPort", "kvCacheManagerPath", "kvCacheManagerTimeout"})
      p.ignore(name, "a KV manager is asked where router.kvmanager names it");
  }
  bool uses_cache() const override { return true; }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const double blocks = context.request.blocks;
    const bool prefills = !disaggregated_ || context.leg == serving_leg::prefill;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& c = all[i];
      if (!c.load.kv_usage || !c.load.waiting) {
        out[i] = not_measured;
        continue;
      }
      const double missed = blocks == 0 ? 1.0 : 1.0 - c.expected_blocks() / blocks;
      out[i] = (prefills ? miss_ * missed : 0.0) + usage_ * *c.load.kv_usage + waiting_ * *c.load.waiting;
    }
  }

 private:
  bool disaggregated_;
  double miss_ = 1.0;
  double usage_ = 1.0;
  double waiting_ = 1.0;
};

constexpr std::string_view from = "openFuyao hermes-router; terms by its parameters' names";

}  // namespace

plugin_type aggregate_kv_cost_scorer() {
  return {"scorer-aggregate-kv-cache-aware", "a cost: prompt not cached, KV usage, requests waiting", from,
          [](parameters& p) -> plugin_type::made { return std::make_unique<kv_cost>(p, false); }};
}

plugin_type pd_kv_cost_scorer() {
  return {"scorer-pd-kv-cache-aware", "a cost: prompt not cached (prefill only), KV usage, requests waiting", from,
          [](parameters& p) -> plugin_type::made { return std::make_unique<kv_cost>(p, true); }};
}

}  // namespace infernex::router::plugins
