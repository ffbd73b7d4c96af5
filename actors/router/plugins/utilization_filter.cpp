#include <algorithm>
#include <optional>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// Drops engines over a limit. What was not measured is not over it.
class utilization final : public filter {
 public:
  explicit utilization(parameters& p) {
    p.each(
         "conditions",
         [this](parameters& one) {
           condition c;
           one.read_choice("metric", c.metric,
                           {"active-requests", "running-requests", "waiting-queue", "kv-cache-utilization"},
                           "what is looked at")
               .read("maxValue", c.most, 0, 1e12, "the most it may be");
           conditions_.push_back(c);
         },
         "metric and maxValue; all must hold")
        .read("fallbackOnEmpty", keep_all_, "where all are over the limits, keep them all");
  }
  void apply(const decision_context&, std::vector<candidate>& kept) override {
    const auto over = [&](const candidate& c) {
      return std::any_of(conditions_.begin(), conditions_.end(), [&](const condition& one) {
        const auto n = value(c.load, one.metric);
        return n && *n > one.most;
      });
    };
    if (keep_all_ && std::all_of(kept.begin(), kept.end(), over)) return;
    std::erase_if(kept, over);
  }

 private:
  struct condition {
    std::size_t metric = 0;
    double most = 0;
  };
  static std::optional<double> value(const load_reading& load, std::size_t metric) {
    switch (metric) {
      case 0:
        return load.in_flight;
      case 1:
        return load.running;
      case 2:
        return load.waiting;
      default:
        return load.kv_usage;
    }
  }

  std::vector<condition> conditions_;
  bool keep_all_ = false;
};

}  // namespace

plugin_type utilization_filter() {
  return {"utilization-filter", "only engines that are not over given limits", "llm-d router",
          [](parameters& p) -> plugin_type::made { return std::make_unique<utilization>(p); }};
}

}  // namespace infernex::router::plugins
