#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

class always final : public disaggregation_decider {
  bool disaggregate(const decision_context&, const candidate&) override { return true; }
};

/// Worth it from so many tokens that the decode engine would have to prefill itself.
class by_prefix final : public disaggregation_decider {
 public:
  explicit by_prefix(parameters& p) {
    p.read("nonCachedTokens", least_uncached_, 0, 1'000'000'000, "tokens without a cached prefix; 0: never")
        .read("promptTokens", least_prompt_, 0, 1'000'000'000, "tokens of the prompt; 0: any");
  }
  bool uses_cache() const override { return least_uncached_ != 0; }
  bool disaggregate(const decision_context& context, const candidate& decode) override {
    return least_uncached_ != 0 && context.request.tokens() >= least_prompt_ &&
           context.request.uncached_tokens(decode.expected_blocks()) >= least_uncached_;
  }

 private:
  std::uint32_t least_uncached_ = 0;
  std::uint32_t least_prompt_ = 0;
};

}  // namespace

plugin_type always_decider() {
  return {"always-disagg-pd-decider", "always disaggregates", "llm-d router",
          [](parameters&) -> plugin_type::made { return std::make_unique<always>(); }};
}

plugin_type prefix_based_decider() {
  return {"prefix-based-pd-decider", "disaggregates prompts of which enough is not cached on the decode engine",
          "llm-d router", [](parameters& p) -> plugin_type::made { return std::make_unique<by_prefix>(p); }};
}

}  // namespace infernex::router::plugins
