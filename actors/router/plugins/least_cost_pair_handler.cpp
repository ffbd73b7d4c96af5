#include <algorithm>

#include "actors/router/plugins/all.hpp"
#include "actors/router/row_finder.hpp"

namespace infernex::router::plugins {
namespace {

/// The least total of each PD group's prefill engines. Keeps its memory from decision to decision.
class group_offers final : public prefill_offers {
  auto name_of() const {
    return [this](std::size_t i) -> std::string_view { return offers_[i].by->to->group; };
  }

 public:
  void clear() { offers_.clear(); }
  void collect(std::span<const candidate> all, std::span<const double> totals) {
    offers_.clear();
    by_group_.clear(all.size());
    one_group_ = true;
    for (std::size_t i = 0; i < std::min(all.size(), totals.size()); ++i) {
      const auto& group = all[i].to->group;
      if (group.empty()) {
        one_group_ = false;
        continue;
      }
      const auto fresh = static_cast<std::uint32_t>(offers_.size());
      const auto at = by_group_.find_or_add(group, fresh, name_of());
      if (at == fresh)
        offers_.push_back({&all[i], totals[i]});
      else if (totals[i] < offers_[at].cost)
        offers_[at] = {&all[i], totals[i]};
    }
    one_group_ = one_group_ && offers_.size() == 1;
  }
  const offer* find(std::string_view group) const override {
    if (offers_.empty() || group.empty()) return nullptr;
    const auto at = by_group_.find(group, name_of());
    return at == row_finder::none ? nullptr : &offers_[at];
  }
  /// All that were collected are of one group.
  bool one_group() const { return one_group_; }

 private:
  std::vector<offer> offers_;
  row_finder by_group_;
  bool one_group_ = true;
};

/// Pairs and single engines in one decision, by one cost: both profiles' totals are costs of one unit, and the decode
/// profile's scorer gives a decode engine the less of what it costs with its group's best prefill engine and alone
/// (decision_context::offers). As nothing in a pair's cost depends on both engines but that they are of one group, the
/// best prefill engine of each group and one look at each engine that answers find the best pair of all.
class least_cost_pair final : public profile_handler {
 public:
  explicit least_cost_pair(parameters& p) {
    p.below(
        "profiles",
        [this](parameters& names) {
          names.read("decode", decode_, "profile that chooses the engine that answers")
              .read("prefill", prefill_, "profile that chooses the engine that computes the prompt");
        },
        "names of the profiles");
    p.below(
        "deciders",
        [this](parameters& names) {
          names.read("prefill", decider_,
                     "plugin that decides between a pair and its decode engine alone; none: pairs");
        },
        "names of the deciders");
  }
  bool disaggregates() const override { return true; }
  std::string_view decider_name() const override { return decider_; }
  void use(disaggregation_decider& decider) override { decides_ = &decider; }
  std::vector<std::string_view> profiles() const override { return {decode_, prefill_}; }

  void handle(const decision_context& context, profile_runner& profiles) override {
    using leg = profile_runner::leg;
    offers_.clear();
    if (profiles.run(prefill_, leg::prefill)) offers_.collect(profiles.considered(), profiles.totals());
    profiles.offer(&offers_);
    const bool answered = profiles.run(decode_, leg::decode);
    const bool pair = answered && is_worth_it(context, *profiles.best(leg::decode), profiles);
    profiles.offer(nullptr);
    if (!pair)
      profiles.drop(leg::prefill);
    else if (!offers_.one_group())
      profiles.run(prefill_, leg::prefill, profiles.best(leg::decode)->to->group);
  }

 private:
  bool is_worth_it(const decision_context& context, const candidate& decode, profile_runner& profiles) {
    if (decode.to->role != fb::EngineRole::Decode || !offers_.find(decode.to->group)) return false;
    if (!decides_) return true;
    if (const auto weights = decides_->weigh(context, decode)) profiles.weighed(*weights);
    return decides_->disaggregate(context, decode);
  }

  std::string decode_ = "decode";
  std::string prefill_ = "prefill";
  std::string decider_;
  disaggregation_decider* decides_ = nullptr;
  group_offers offers_;
};

}  // namespace

plugin_type least_cost_pair_handler() {
  return {"least-cost-pair-handler", "the best pair of a PD group or the best single engine, by one cost", "InferNex",
          [](parameters& p) -> plugin_type::made { return std::make_unique<least_cost_pair>(p); }};
}

}  // namespace infernex::router::plugins
