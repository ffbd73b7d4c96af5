#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Prompts that nobody caches go to whom the last of them went longest ago, so that caches fill evenly:
/// 1 - rank / (n - 1), those that never had one first. 0.5 for everybody where somebody caches part of the prompt.
class no_hit_lru final : public scorer {
 public:
  explicit no_hit_lru(parameters& p) {
    p.read("lruSize", capacity_, 1, 1'000'000, "engines remembered")
        .ignore("prefixPluginType", "cached blocks have one source here")
        .ignore("prefixPluginName", "cached blocks have one source here")
        .ignore("prefixMatchInfoProducerName", "cached blocks have one source here");
  }
  bool uses_cache() const override { return true; }

  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    auto& cold = cold_[static_cast<std::size_t>(context.leg)];
    cold = std::none_of(all.begin(), all.end(), [](const candidate& c) { return c.expected_blocks() != 0; });
    if (!cold || all.size() == 1) {
      std::fill(out.begin(), out.end(), cold ? 1.0 : 0.5);
      return;
    }
    order_.clear();
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      const auto known = last_.find(name_of(all[i]));
      order_.emplace_back(known == last_.end() ? 0 : known->second, i);
    }
    std::sort(order_.begin(), order_.end());
    for (std::size_t rank = 0; rank < order_.size(); ++rank)
      out[order_[rank].second] = 1.0 - static_cast<double>(rank) / static_cast<double>(all.size() - 1);
  }

  void routed(const decision_context& context, const candidate& to) override {
    if (!cold_[static_cast<std::size_t>(context.leg)]) return;
    if (last_.size() >= capacity_ && !last_.contains(name_of(to)))
      last_.erase(std::min_element(last_.begin(), last_.end(), [](auto& a, auto& b) { return a.second < b.second; }));
    last_[name_of(to)] = ++count_;
  }

 private:
  static std::size_t name_of(const candidate& c) { return std::hash<std::string>{}(c.to->instance); }

  std::uint32_t capacity_ = 1024;
  std::uint64_t count_ = 0;
  std::unordered_map<std::size_t, std::uint64_t> last_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order_;
  std::array<bool, 2> cold_{};
};

}  // namespace

plugin_type no_hit_lru_scorer() {
  return {"no-hit-lru-scorer", "prompts nobody caches go to whom they went longest ago", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<no_hit_lru>(p); }};
}

}  // namespace infernex::router::plugins
