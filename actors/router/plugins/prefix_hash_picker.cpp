#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/engine_ring.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

/// Prompts that begin alike go to the same engine of a ring, as long as its requests in flight are at most
/// loadFactor * (all in flight + 1) / engines; else, and for prompts of less than a block, the least loaded.
/// Runners-up by load.
class prefix_hash final : public picker {
 public:
  explicit prefix_hash(parameters& p) : rings_(p) {
    p.read("prefixTokens", prefix_tokens_, 1, 1'000'000, "tokens at the beginning of a prompt that are looked at")
        .read("loadFactor", load_factor_, 1, 1e6, "how far above its share of the load the ring's choice may be");
  }

  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    const auto preferred = on_ring(context, all, order);
    rank_by(all.size(), keep, order, [&](std::uint32_t a, std::uint32_t b) {
      if ((a == preferred) != (b == preferred)) return a == preferred;
      return all[a].load.in_flight < all[b].load.in_flight;
    });
  }

 private:
  static constexpr std::uint32_t none = 0xffffffff;

  std::uint32_t on_ring(const decision_context& context, std::span<const candidate> all,
                        std::vector<std::uint32_t>& order) {
    const auto& request = context.request;
    if (request.keys.empty() || all.empty()) return none;
    // Keys are chained: that of a block stands for all before it.
    const auto blocks = std::max<std::size_t>(1, prefix_tokens_ / std::max(1U, request.block_size));
    const auto key = request.keys[std::min(blocks, request.keys.size()) - 1];
    rings_.rank(context.model, all, engine_rings::hash_of(key), 1, order);
    const auto found = order.front();
    double total = 1;
    for (const auto& c : all) total += c.load.in_flight;
    return all[found].load.in_flight <= load_factor_ * total / static_cast<double>(all.size()) ? found : none;
  }

  std::uint32_t prefix_tokens_ = 256;
  double load_factor_ = 1.25;
  engine_rings rings_;
};

}  // namespace

plugin_type prefix_hash_picker() {
  return {"prefix-hash-picker", "prompts that begin alike to the same engine, unless it is overloaded",
          "SGLang router (SMG), policy prefix_hash",
          [](parameters& p) -> plugin_type::made { return std::make_unique<prefix_hash>(p); }};
}

}  // namespace infernex::router::plugins
