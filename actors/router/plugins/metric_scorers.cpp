#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

constexpr std::string_view from = "Gateway API Inference Extension, scorer of that name";
constexpr std::string_view one_source = "in-flight requests have one source here";

/// (most - n) / (most - least); 1 where all are equal.
class between_extremes : public scorer {
 public:
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    std::optional<double> least, most;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto n = value_of(all[i]);
      out[i] = n ? *n : not_measured;
      if (!n) continue;
      least = std::min<double>(least.value_or(*n), *n);
      most = std::max<double>(most.value_or(*n), *n);
    }
    if (!most) return;
    for (auto& s : out)
      if (s == s) s = *most == *least ? 1.0 : (*most - s) / (*most - *least);
  }

 private:
  virtual std::optional<std::uint32_t> value_of(const candidate& c) const = 0;
};

class queue final : public between_extremes {
  std::optional<std::uint32_t> value_of(const candidate& c) const override { return c.load.waiting; }
};

class running final : public between_extremes {
  std::optional<std::uint32_t> value_of(const candidate& c) const override { return c.load.running; }
};

/// 0.5 * (1 - waiting / threshold), 0 from the threshold on.
class load_aware final : public scorer {
 public:
  explicit load_aware(parameters& p) { p.read("threshold", threshold_, 1, 1e9, "waiting requests that score 0"); }
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    for (std::size_t i = 0; i < all.size(); ++i)
      out[i] = all[i].load.waiting ? 0.5 * (1.0 - std::min<double>(*all[i].load.waiting, threshold_) / threshold_)
                                   : not_measured;
  }

 private:
  double threshold_ = 128;
};

/// Idle engines 1; the others (most - n) / most, times what a busy one can get at best.
class active_requests final : public scorer {
 public:
  explicit active_requests(parameters& p) {
    p.read("idleThreshold", idle_, 0, 1'000'000, "requests up to which an engine counts as idle")
        .read("maxBusyScore", best_busy_, 0, 1, "the most that an engine which is not idle can get")
        .ignore("requestTimeout", "a request counts until it ends")
        .ignore("inFlightLoadProducerName", one_source);
  }
  void score(const decision_context&, std::span<const candidate> all, std::span<double> out) override {
    double most = 0;
    for (const auto& c : all) most = std::max<double>(most, c.load.in_flight);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double n = all[i].load.in_flight;
      out[i] = n <= idle_ ? 1.0 : (most - n) / most * best_busy_;
    }
  }

 private:
  std::uint32_t idle_ = 0;
  double best_busy_ = 1.0;
};

/// 1 - tokens / threshold: those not yet prefilled there, and what this request would add.
class token_load final : public scorer {
 public:
  explicit token_load(parameters& p) {
    p.read("queueThresholdTokens", threshold_, 1, 1e15, "tokens that score 0")
        .ignore("inFlightLoadProducerName", one_source);
  }
  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& c = all[i];
      const auto tokens = static_cast<double>(c.load.prefill_tokens) +
                          static_cast<double>(context.request.uncached_tokens(c.expected_blocks()));
      out[i] = 1.0 - std::min(tokens, threshold_) / threshold_;
    }
  }

 private:
  double threshold_ = 4'194'304;
};

}  // namespace

plugin_type queue_scorer() {
  return {"queue-scorer", "few requests waiting, between the least and the most of the candidates", from,
          [](parameters&) -> plugin_type::made { return std::make_unique<queue>(); }};
}

plugin_type running_requests_scorer() {
  return {"running-requests-size-scorer",
          "few requests running, between the least and the most of the candidates",
          from,
          [](parameters&) -> plugin_type::made { return std::make_unique<running>(); },
          {"running-requests-scorer"}};
}

plugin_type load_aware_scorer() {
  return {"load-aware-scorer", "0.5 with nothing waiting, down to 0 at the threshold", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<load_aware>(p); }};
}

plugin_type active_request_scorer() {
  return {"active-request-scorer", "few requests in flight, idle engines first", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<active_requests>(p); }};
}

plugin_type token_load_scorer() {
  return {"token-load-scorer", "few prompt tokens waiting to be prefilled, this request's included", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<token_load>(p); }};
}

}  // namespace infernex::router::plugins
