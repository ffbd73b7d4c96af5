// Kthena's plugins that look at load. Its scores of 0..100, whole numbers, are 0..1 here.
#include <algorithm>
#include <limits>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

constexpr std::string_view kthena = "Volcano Kthena, kthena-router";

/// Drops engines with too many requests waiting; one whose queue was not measured stays.
class least_request_limit final : public filter {
 public:
  explicit least_request_limit(parameters& p) {
    p.read("maxWaitingRequests", limit_, 1, 1'000'000, "an engine with so many requests waiting gets no more");
  }
  void apply(const decision_context&, std::vector<candidate>& kept) override {
    std::erase_if(kept, [&](const candidate& c) { return c.load.waiting && *c.load.waiting >= limit_; });
  }

 private:
  std::uint32_t limit_ = 10;
};

/// (most - base) / most, where base = in flight + 100 * those of them that the engine does not run; 1 if most is 0.
/// Where no engine's running requests are measured, base = in flight.
class least_request final : public scorer {
 public:
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    const bool any_measured = std::any_of(all.begin(), all.end(), [](const auto& c) { return c.load.running; });
    double most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& load = all[i].load;
      const double in_flight = load.in_flight;
      if (!any_measured)
        out[i] = in_flight;
      else if (!load.running)
        out[i] = not_measured;
      else
        out[i] = in_flight + 100 * std::max(in_flight - *load.running, 0.0);
      if (out[i] > most) most = out[i];  // false for what was not measured
    }
    for (auto& s : out) s = most == 0 ? s + 1 : (most - s) / most;  // keeps what was not measured
  }
};

/// weight * s(time to first token) + (1 - weight) * s(time per output token), s(x) = (max - x) / (max - min); 1 where
/// all are equal, 0.5 where nothing was learned yet.
class least_latency final : public scorer {
 public:
  explicit least_latency(parameters& p) {
    p.read("TTFTTPOTWeightFactor", weight_, 0, 1, "weight of the time to first token; the rest is the other's");
  }
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    std::fill(out.begin(), out.end(), 0.0);
    add(all, out, &learned_speed::ttft_ms, weight_);
    add(all, out, &learned_speed::tpot_ms, 1 - weight_);
  }

 private:
  static void add(std::span<const candidate> all, std::span<double> out, std::optional<float> learned_speed::*what,
                  double weight) {
    double least = std::numeric_limits<double>::max(), most = 0;
    const auto known = [&](const candidate& c) { return c.load.speed.*what && *(c.load.speed.*what) > 0; };
    const auto value = [&](const candidate& c) { return static_cast<double>(*(c.load.speed.*what)); };
    for (const auto& c : all) {
      if (!known(c)) continue;
      least = std::min(least, value(c));
      most = std::max(most, value(c));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double s = !known(all[i]) ? 0.5 : most == least ? 1.0 : (most - value(all[i])) / (most - least);
      out[i] += weight * s;
    }
  }

  double weight_ = 0.5;
};

}  // namespace

plugin_type least_request_filter() {
  return {"least-request-filter", "drops engines with too many requests waiting", kthena,
          [](parameters& p) -> plugin_type::made { return std::make_unique<least_request_limit>(p); }};
}

plugin_type least_request_scorer() {
  return {"least-request-scorer", "few requests in flight, above all few that the engine does not run yet", kthena,
          [](parameters&) -> plugin_type::made { return std::make_unique<least_request>(); }};
}

plugin_type least_latency_scorer() {
  return {"least-latency-scorer", "short times to first token and per output token, against the other candidates",
          kthena, [](parameters& p) -> plugin_type::made { return std::make_unique<least_latency>(p); }};
}

plugin_type gpu_usage_scorer() {
  auto type = free_kv_scorer();
  type.name = "gpu-usage-scorer";
  type.source = "Volcano Kthena, kthena-router; AIBrix, strategy least-kv-cache";
  type.aliases = {"least-kv-cache-scorer"};
  return type;
}

}  // namespace infernex::router::plugins
