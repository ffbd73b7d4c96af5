#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/ranking.hpp"

namespace infernex::router::plugins {
namespace {

/// The less loaded of two drawn: by the share of KV blocks in use where both have it measured, else by requests in
/// flight. Runners-up: the other one, then as drawn.
class power_of_two final : public picker {
 public:
  void pick(const decision_context& context, std::span<const candidate> all, std::span<const double>, std::size_t keep,
            std::vector<std::uint32_t>& order) override {
    draw(context.random, all.size(), std::max<std::size_t>(keep, 2), order);
    if (order.size() > 1 && less_loaded(all[order[1]].load, all[order[0]].load)) std::swap(order[0], order[1]);
    if (order.size() > keep) order.resize(keep);
  }

 private:
  static bool less_loaded(const load_reading& a, const load_reading& b) {
    return a.kv_usage && b.kv_usage ? *a.kv_usage < *b.kv_usage : a.in_flight < b.in_flight;
  }
};

}  // namespace

plugin_type power_of_two_picker() {
  return {"power-of-two-picker", "the less loaded of two drawn at random", "SGLang router (SMG), policy power_of_two",
          [](parameters&) -> plugin_type::made { return std::make_unique<power_of_two>(); }};
}

}  // namespace infernex::router::plugins
