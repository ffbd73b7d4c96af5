#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

void read_most(parameters& p) { p.ignore("maxNumOfEndpoints", "runners-up are kept for retry whatever it says"); }

/// The highest total; equal ones take turns.
class max_score final : public picker {
 public:
  explicit max_score(parameters& p) { read_most(p); }
  void pick(const decision_context& context, std::span<const candidate>, std::span<const double> totals,
            std::size_t keep, std::vector<std::uint32_t>& order) override {
    rank_by_total(context, totals, keep, false, order);
  }
};

/// The lowest total, which is then a cost; among equal ones a random one.
class min_random final : public picker {
 public:
  void pick(const decision_context& context, std::span<const candidate>, std::span<const double> totals,
            std::size_t keep, std::vector<std::uint32_t>& order) override {
    rank_by_total(context, totals, keep, true, order);
    if (order.empty()) return;
    // Only those kept can be told apart from here on; with one kept, the turn has chosen among equals.
    const auto end =
        std::find_if(order.begin(), order.end(), [&](std::uint32_t i) { return totals[i] != totals[order.front()]; });
    std::shuffle(order.begin(), end, context.random);
  }
  bool takes_least() const override { return true; }
};

class random_choice final : public picker {
 public:
  explicit random_choice(parameters& p) { read_most(p); }
  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    draw(context.random, all.size(), keep, order);
  }
};

/// In turn, whatever the totals.
class round_robin final : public picker {
 public:
  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    for (std::size_t n = 0; n < std::min(keep, all.size()); ++n)
      order.push_back(static_cast<std::uint32_t>((context.turn + n) % all.size()));
  }
  bool in_turn() const override { return true; }
};

}  // namespace

plugin_type max_score_picker() {
  return {"max-score-picker", "the highest total; equal ones take turns", "Gateway API Inference Extension",
          [](parameters& p) -> plugin_type::made { return std::make_unique<max_score>(p); }};
}

plugin_type min_random_picker() {
  return {"picker-min-random",
          "the lowest total, a random one among equals",
          "openFuyao hermes-router",
          [](parameters&) -> plugin_type::made { return std::make_unique<min_random>(); },
          {"picker-pd-kv-cache-aware"}};
}

plugin_type random_picker() {
  return {"random-picker", "any of them, each as likely", "Gateway API Inference Extension",
          [](parameters& p) -> plugin_type::made { return std::make_unique<random_choice>(p); }};
}

plugin_type round_robin_picker() {
  return {"round-robin-picker",
          "in turn",
          "openFuyao hermes-router, strategy round-robin",
          [](parameters&) -> plugin_type::made { return std::make_unique<round_robin>(); },
          {"round-robin"}};
}

}  // namespace infernex::router::plugins
