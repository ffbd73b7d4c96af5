#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/decode_engines.hpp"

namespace infernex::router::plugins {
namespace {

/// 1 = none, 0 = as many as the busiest candidate, or as `smallest_scale` if that is more: one request more or less on
/// an idle fleet must not outweigh a cached prefix.
class against_busiest : public scorer {
 public:
  explicit against_busiest(parameters& p) {
    p.read("smallestScale", smallest_scale_, 1, 1e6, "requests that the busiest is taken to have at least");
  }
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    double most = smallest_scale_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      out[i] = value_of(all[i]);
      if (out[i] > most) most = out[i];  // false for what was not measured
    }
    for (auto& s : out) s = 1.0 - s / most;
  }

 private:
  virtual double value_of(const candidate& c) const = 0;
  double smallest_scale_ = 8;
};

class waiting final : public against_busiest {
  using against_busiest::against_busiest;
  double value_of(const candidate& c) const override { return c.load.waiting ? *c.load.waiting : not_measured; }
};

class in_flight final : public against_busiest {
  using against_busiest::against_busiest;
  double value_of(const candidate& c) const override { return c.load.in_flight; }
};

class free_kv final : public scorer {
 public:
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    for (std::size_t i = 0; i < all.size(); ++i)
      out[i] = all[i].load.kv_usage ? 1.0 - std::clamp(*all[i].load.kv_usage, 0.0, 1.0) : not_measured;
  }
};

/// What would be left of the engine's KV blocks with this prompt in them, by the routers' own count, which knows of
/// requests the engine has not measured yet: 1 = all, below 0 = they would not fit.
class kv_headroom final : public scorer {
 public:
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    const auto own = static_cast<double>(context.request.prompt_blocks());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto capacity = kv_capacity(*all[i].to, context.request.block_size);
      out[i] = capacity ? 1.0 - (static_cast<double>(all[i].load.active_blocks) + own) / *capacity : not_measured;
    }
  }
};

}  // namespace

plugin_type kv_headroom_scorer() {
  return {"kv-headroom-scorer", "what would be left of the engine's KV blocks with this prompt in them", "InferNex",
          [](parameters&) -> plugin_type::made { return std::make_unique<kv_headroom>(); }};
}

plugin_type waiting_scorer() {
  return {"waiting-scorer", "few requests waiting in the engine, against the busiest candidate", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<waiting>(p); }};
}

plugin_type in_flight_scorer() {
  return {"in-flight-scorer", "few requests of our gateways in flight there, against the busiest candidate", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<in_flight>(p); }};
}

plugin_type free_kv_scorer() {
  return {"kv-cache-utilization-scorer", "free share of the engine's KV blocks: 1 - usage",
          "Gateway API Inference Extension, scorer of that name",
          [](parameters&) -> plugin_type::made { return std::make_unique<free_kv>(); }};
}

}  // namespace infernex::router::plugins
