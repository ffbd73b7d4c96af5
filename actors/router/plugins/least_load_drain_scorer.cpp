#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// A cost, in seconds: the time to prefill what is queued there, and barrier * k / (1 - k), where k is the share of KV
/// blocks in use. What is queued is the routers' count of prompt tokens not yet prefilled; throughput is learned from
/// answers. An engine that reports nothing: requests in flight * a usual prompt / the fleet's mean throughput. If none
/// does: the fewest requests in flight. An engine that reports, but not its KV usage, gets the mean of the others'.
class least_load_drain final : public scorer {
 public:
  explicit least_load_drain(parameters& p) {
    p.read("fallbackThroughput", fallback_, 1, 1e9, "tokens a second that an engine prefills, until that is learned")
        .read("meanPrefillTokens", mean_prefill_, 1, 1e9, "a usual prompt, for engines that report nothing")
        .read("kvBarrier", barrier_, 0, 1e6, "seconds that an engine whose KV cache is half full counts for");
  }

  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    double throughputs = 0, usages = 0;
    std::size_t reporting = 0, measured = 0;
    for (const auto& c : all) {
      if (!reports(c)) continue;
      throughputs += throughput_of(c);
      ++reporting;
      if (!c.load.kv_usage) continue;
      usages += *c.load.kv_usage;
      ++measured;
    }
    const double mean_usage = measured == 0 ? 0.0 : usages / static_cast<double>(measured);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& c = all[i];
      if (reporting == 0)
        out[i] = c.load.in_flight;
      else if (!reports(c))
        out[i] = c.load.in_flight * mean_prefill_ * static_cast<double>(reporting) / throughputs;
      else
        out[i] = static_cast<double>(c.load.prefill_tokens) / throughput_of(c) +
                 barrier_at(c.load.kv_usage.value_or(mean_usage));
    }
  }

 private:
  static bool reports(const candidate& c) { return c.load.running || c.load.waiting || c.load.kv_usage; }
  double throughput_of(const candidate& c) const {
    const auto ms_a_token = c.load.speed.prefill_ms_a_token;
    return ms_a_token && *ms_a_token > 0 ? 1000.0 / static_cast<double>(*ms_a_token) : fallback_;
  }
  double barrier_at(double usage) const {
    const double k = std::clamp(usage, 0.0, 0.999);
    return barrier_ * k / (1 - k);
  }

  double fallback_ = 2'000;
  double mean_prefill_ = 1'024;
  double barrier_ = 0.15;
};

}  // namespace

plugin_type least_load_drain_scorer() {
  return {"least-load-drain-scorer", "a cost: seconds until what is queued is prefilled, more as the KV cache fills",
          "SGLang router (SMG), policy least_load",
          [](parameters& p) -> plugin_type::made { return std::make_unique<least_load_drain>(p); }};
}

}  // namespace infernex::router::plugins
