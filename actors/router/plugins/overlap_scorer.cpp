#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Share of the prompt's cacheable blocks that need no prefill, each weighed by the tier it lies on: copying it in
/// costs less than computing it anew.
class overlap final : public scorer {
 public:
  explicit overlap(parameters& p) {
    p.read("device", device_, 0, 1, "what a block on the device is worth")
        .read("host", host_, 0, 1, "what a block in the host's memory is worth")
        .read("disk", disk_, 0, 1, "what a block on disk is worth");
  }
  bool uses_cache() const override { return true; }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto blocks = static_cast<double>(context.request.blocks);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& c = all[i];
      const double held = device_ * c.device_blocks + host_ * (c.host_blocks - c.device_blocks) +
                          disk_ * (c.held_blocks - c.host_blocks);
      out[i] = blocks == 0 ? 0.0 : std::max(held, device_ * c.predicted_blocks) / blocks;
    }
  }

 private:
  double device_ = 1.0;
  double host_ = 0.8;
  double disk_ = 0.5;
};

}  // namespace

plugin_type overlap_scorer() {
  return {"overlap-scorer", "share of the prompt that the engine caches, weighed by tier", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<overlap>(p); }};
}

}  // namespace infernex::router::plugins
