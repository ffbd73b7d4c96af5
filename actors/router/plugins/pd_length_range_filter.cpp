#include <algorithm>

#include "actors/router/plugins/all.hpp"

namespace infernex::router::plugins {
namespace {

/// A request goes to a PD group whose declared range its prompt's length is in, and only to a whole one: with an engine
/// for prefill and one for decode that can both take it. Where there is none, to aggregated engines whose range says
/// `combined`; else to nobody, never to a group of another length. Engines of a group without a range take any length.
class pd_length_range final : public filter {
 public:
  explicit pd_length_range(parameters& p) {
    p.each(
        "ranges",
        [this](parameters& one) {
          auto& r = ranges_.emplace_back();
          one.read("group", r.group, "the PD group; nothing: engines without one")
              .read("min", r.min, 0, longest, "tokens of the shortest prompt it takes")
              .read("max", r.max, 0, longest, "tokens of the longest; 0: any")
              .read("combined", r.combined, "its aggregated engines stand in where no group takes the length");
          if (r.max == 0) r.max = longest;
          if (r.min > r.max) one.complain("min", "is more than max");
          if (ranges_.size() > most_ranges) one.complain("group", "more than 1024 ranges");
        },
        "lengths of prompts, in tokens, that PD groups take");
  }

  void apply(const decision_context& context, std::vector<candidate>& kept) override {
    const auto length = context.request.tokens();
    find_whole_groups(context);
    const auto in_whole_group = [&](const candidate& c) {
      return paired(c.to->role) && fits(c.to->group, length, false) &&
             std::binary_search(whole_.begin(), whole_.end(), std::string_view(c.to->group));
    };
    if (std::any_of(kept.begin(), kept.end(), in_whole_group))
      std::erase_if(kept, [&](const candidate& c) { return !in_whole_group(c); });
    else
      std::erase_if(kept, [&](const candidate& c) { return paired(c.to->role) || !fits(c.to->group, length, true); });
  }

 private:
  static constexpr std::uint64_t longest = 0x7fffffff;
  static constexpr std::size_t most_ranges = 1'024;
  struct range {
    std::string group;
    std::uint64_t min = 0;
    std::uint64_t max = longest;
    bool combined = false;
  };

  static bool paired(fb::EngineRole role) { return role == fb::EngineRole::Prefill || role == fb::EngineRole::Decode; }
  static bool routable(const placement& request, const endpoint& e) {
    return e.ready() &&
           std::find(request.exclude.begin(), request.exclude.end(), e.instance) == request.exclude.end() &&
           (request.adapter.empty() ||
            std::find(e.adapters.begin(), e.adapters.end(), request.adapter) != e.adapters.end());
  }
  /// Combined: some range has to say so.
  bool fits(std::string_view group, std::uint64_t length, bool combined) const {
    bool declared = false;
    for (const auto& r : ranges_) {
      if (r.group != group) continue;
      declared = true;
      if (r.min <= length && length <= r.max && (r.combined || !combined)) return true;
    }
    return !declared && !combined;
  }
  /// Into whole_, sorted.
  void find_whole_groups(const decision_context& context) {
    for (auto* groups : {&prefilling_, &decoding_, &whole_}) groups->clear();
    for (const auto& e : context.model.endpoints)
      if (paired(e.role) && routable(context.request, e))
        (e.role == fb::EngineRole::Prefill ? prefilling_ : decoding_).push_back(e.group);
    for (auto* groups : {&prefilling_, &decoding_}) {
      std::sort(groups->begin(), groups->end());
      groups->erase(std::unique(groups->begin(), groups->end()), groups->end());
    }
    std::set_intersection(prefilling_.begin(), prefilling_.end(), decoding_.begin(), decoding_.end(),
                          std::back_inserter(whole_));
  }

  std::vector<range> ranges_;
  std::vector<std::string_view> prefilling_, decoding_, whole_;  // groups; of the decision at hand
};

}  // namespace

plugin_type pd_length_range_filter() {
  return {"pd-length-range-filter", "PD groups by the length of the prompt, as declared", "AIBrix gateway, strategy pd",
          [](parameters& p) -> plugin_type::made { return std::make_unique<pd_length_range>(p); }};
}

}  // namespace infernex::router::plugins
