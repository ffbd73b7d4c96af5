#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// cached share of the prompt - beta * (in flight - mean) / max(1, mean): at most 1 + beta, and below 0 for the busy.
class load_aware_prefix final : public scorer {
 public:
  explicit load_aware_prefix(parameters& p) {
    p.read("beta", beta_, 0, 1e6, "what being busier than the mean, by once the mean, costs in cached prompts");
  }
  bool uses_cache() const override { return true; }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    double sum = 0;
    for (const auto& c : all) sum += c.load.in_flight;
    const double mean = all.empty() ? 0.0 : sum / static_cast<double>(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto blocks = context.request.blocks;
      const double cached = blocks == 0 ? 0.0 : static_cast<double>(all[i].expected_blocks()) / blocks;
      out[i] = cached - beta_ * (all[i].load.in_flight - mean) / std::max(1.0, mean);
    }
  }

 private:
  double beta_ = 1;
};

}  // namespace

plugin_type load_aware_prefix_scorer() {
  return {"load-aware-prefix-scorer", "cached share of the prompt, less what the engine is busier than the mean",
          "vLLM production-stack router, loadaware",
          [](parameters& p) -> plugin_type::made { return std::make_unique<load_aware_prefix>(p); }};
}

}  // namespace infernex::router::plugins
