#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "actors/router/plugins/all.hpp"
#include "actors/router/plugins/endpoint_words.hpp"
#include "actors/router/plugins/length_buckets.hpp"

namespace infernex::router::plugins {
namespace {

using range = length_buckets::range;

constexpr std::size_t max_models = 64;

/// Prompts of like length go to the same PD groups, so that short ones do not wait behind long ones.
///
/// A filter first: of the prefill engines, those of the groups whose range the prompt is in. Declared ranges go by the
/// prompt's length and are binding: too long a prompt goes nowhere. Learned ones go by the tokens that the engine has
/// to compute: one that caches a long prompt may take it as the short one it is to it. Where the best of them is much
/// busier than the least busy engine, the next longer range's engines may help (its engines can take it, and shorter
/// prompts do not keep others waiting for long); never the other way round. Where no group of the range has a prefill
/// engine: engines that do both, else the next longer range.
///
/// Then a score. Prefill: 1 - cost / largest cost, with
///   cost = alpha * tokens it has to compute for this prompt + beta * tokens that wait to be computed there.
/// Decode: the free share of its KV blocks. Mode random: by chance among those the filter left.
class pd_bucket final : public scorer {
 public:
  explicit pd_bucket(parameters& p) : drops_(*this), learning_(read(p)) {}

  bool uses_cache() const override { return mode_ != mode::random; }
  filter* filters() override { return &drops_; }
  void meet(const plugin& other) override { words_.take_from(other); }

  void score(const decision_context& context, std::span<const candidate> all, std::span<double> out) override {
    if (mode_ == mode::random) {
      std::uniform_real_distribution<double> any(0, 1);
      for (auto& s : out) s = any(context.random);
      return;
    }
    if (context.leg == serving_leg::decode) {
      for (std::size_t i = 0; i < all.size(); ++i)
        out[i] = all[i].load.kv_usage ? 1.0 - std::clamp(*all[i].load.kv_usage, 0.0, 1.0) : not_measured;
      return;
    }
    double most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      out[i] = alpha_ * static_cast<double>(own_tokens(context, all[i])) +
               beta_ * static_cast<double>(all[i].load.prefill_tokens);
      most = std::max(most, out[i]);
    }
    for (auto& s : out) s = most == 0 ? 1.0 : 1.0 - s / most;
  }

  void routed(const decision_context& context, const candidate& to) override {
    if (learns() && context.leg == serving_leg::prefill)
      lengths_of(context.model.model).placed(own_tokens(context, to), context.now);
  }

 private:
  enum class mode : std::uint8_t { declared, learned, random };
  struct declared_range {
    std::string group;
    range of;
  };
  struct outside final : filter {
    explicit outside(pd_bucket& of) : of_(of) {}
    void apply(const decision_context& context, std::vector<candidate>& kept) override {
      context.leg == serving_leg::prefill ? of_.choose_bucket(context, kept) : of_.choose_answering(context, kept);
    }
    pd_bucket& of_;
  };

  length_buckets::settings read(parameters& p) {
    length_buckets::settings s;
    std::size_t chosen = 1;
    double window = 30, adjust = 5;
    p.read_choice("mode", chosen, {"declared", "learned", "random"},
                  "ranges as given, as learned, or by chance in them")
        .each(
            "ranges", [this](parameters& one) { read_range(one); }, "declared ranges; a group without one takes any")
        .read("windowSeconds", window, 1, 3600, "how long a prompt's length counts for learned ranges")
        .read("adjustSeconds", adjust, 0.1, 3600, "how often learned ranges are looked at")
        .read("minImbalanceTokens", least_gap_, 0, 1e12, "waiting tokens more than elsewhere before others help")
        .read("imbalanceRel", least_ratio_, 1, 1e6, "and times as many as elsewhere")
        .read("spill", spill_, "whether the next longer range helps at all")
        .read("combinedFallback", combined_, "whether engines that do both help where a range has no prefill engine")
        .read("alpha", alpha_, 0, 1e6, "weight of the prompt's own tokens")
        .read("beta", beta_, 0, 1e6, "weight of the tokens that wait there")
        .ignore("decayFactor", "tokens stop counting when they are computed; there is nothing to let decay")
        .read("bucketSeperateLength", s.first_split, 0, 1'000'000'000,
              "tokens from which a prompt counts as long until enough is learned")
        .read("bucketSeparateLength", s.first_split, 0, 1'000'000'000, "the same, spelled otherwise");
    mode_ = static_cast<mode>(chosen);
    if (mode_ == mode::declared && declared_.empty()) p.complain("ranges", "at least one, for mode declared");
    if (mode_ == mode::learned && !declared_.empty()) p.complain("ranges", "not in mode learned");
    s.window = std::chrono::milliseconds(std::llround(window * 1000));
    s.adjust = std::chrono::milliseconds(std::llround(adjust * 1000));
    return s;
  }

  void read_range(parameters& one) {
    declared_range r;
    std::uint64_t max = 0;
    one.read("group", r.group, "the PD group")
        .read("min", r.of.min, 0, 1'000'000'000, "tokens of the shortest prompt")
        .read("max", max, 0, 1'000'000'000, "tokens of the longest; 0: any");
    if (max != 0) r.of.max = max;
    if (r.group.empty()) one.complain("group", "the name of a PD group");
    if (r.of.min > r.of.max) one.complain("max", "at least min");
    declared_.push_back(std::move(r));
  }

  bool learns() const { return declared_.empty(); }

  /// Each model's prompts on their own; with too many models at once, all are learned anew.
  length_buckets& lengths_of(const std::string& model) {
    const auto known = learned_.find(model);
    if (known != learned_.end()) return known->second;
    if (learned_.size() >= max_models) learned_.clear();
    return learned_.emplace(model, learning_).first->second;
  }

  static std::uint64_t own_tokens(const decision_context& context, const candidate& c) {
    return context.request.uncached_tokens(c.expected_blocks());
  }

  range range_of(const endpoint& e) const {
    const auto group = words_->group(e);
    if (!learns()) {
      const auto it =
          std::find_if(declared_.begin(), declared_.end(), [&](const declared_range& r) { return r.group == group; });
      return it == declared_.end() ? range{} : it->of;
    }
    const auto it = std::lower_bound(groups_.begin(), groups_.end(), group);
    const auto i = static_cast<std::size_t>(it - groups_.begin());
    return it == groups_.end() || *it != group || i >= ranges_.size() ? range{} : ranges_[i];
  }

  /// Ready groups that are whole, with their prefill engines, whoever of them this request may use: ranges must not
  /// change with a retry.
  void find_ranges(const decision_context& context) {
    if (!learns()) return;
    prefills_.clear();
    answering_.clear();
    for (const auto& e : context.model.endpoints) {
      if (!e.ready()) continue;
      const auto role = words_->role(e);
      if (role == pd_role::prefill) prefills_.push_back(words_->group(e));
      if (role == pd_role::decode || role == pd_role::leader) answering_.push_back(words_->group(e));
    }
    std::sort(prefills_.begin(), prefills_.end());
    std::sort(answering_.begin(), answering_.end());
    groups_.clear();
    members_.clear();
    for (const auto group : prefills_) {
      if (!std::binary_search(answering_.begin(), answering_.end(), group)) continue;
      if (groups_.empty() || groups_.back() != group) {
        groups_.push_back(group);
        members_.push_back({std::hash<std::string_view>{}(group), 0});
      }
      ++members_.back().engines;
    }
    ranges_ = lengths_of(context.model.model).ranges(members_, context.now);
  }

  bool fits(const decision_context& context, const candidate& c) const {
    const auto r = range_of(*c.to);
    const auto length = context.request.tokens();
    return r.min <= length && (learns() ? own_tokens(context, c) : length) <= r.max;
  }

  void choose_bucket(const decision_context& context, std::vector<candidate>& kept) {
    if (kept.empty()) return;
    find_ranges(context);
    const auto length = context.request.tokens();
    std::uint64_t best = ~std::uint64_t{0}, least = best, next = best;
    bool any = false;
    for (const auto& c : kept) {
      least = std::min(least, c.load.prefill_tokens);
      if (fits(context, c)) {
        any = true;
        best = std::min(best, c.load.prefill_tokens);
      } else if (const auto r = range_of(*c.to); r.min > length) {
        next = std::min(next, r.min);
      }
    }
    const auto in_next = [&](const candidate& c) { return range_of(*c.to).min == next && next > length; };
    if (any) {
      const auto gap = static_cast<double>(best - least);
      const bool busy =
          spill_ && gap > least_gap_ && static_cast<double>(best) > least_ratio_ * static_cast<double>(least);
      std::erase_if(kept, [&](const candidate& c) {
        return !fits(context, c) && !(busy && in_next(c) && c.load.prefill_tokens < best);
      });
    } else if (combined_ && !context.partner && somebody_does_both(context)) {
      left_to_both_ = context.number;
      kept.clear();
    } else if (next != ~std::uint64_t{0}) {
      std::erase_if(kept, [&](const candidate& c) { return !in_next(c); });
    } else if (!learns()) {
      kept.clear();
    }
  }

  void choose_answering(const decision_context& context, std::vector<candidate>& kept) {
    if (context.partner) return;
    if (left_to_both_ == context.number)
      std::erase_if(kept, [&](const candidate& c) { return words_->role(*c.to) != pd_role::aggregated; });
    else if (!learns())
      std::erase_if(
          kept, [&](const candidate& c) { return words_->role(*c.to) != pd_role::aggregated && !fits(context, c); });
  }

  bool somebody_does_both(const decision_context& context) const {
    const auto& all = context.model.endpoints;
    const auto& not_these = context.request.exclude;
    return std::any_of(all.begin(), all.end(), [&](const endpoint& e) {
      return e.ready() && words_->role(e) == pd_role::aggregated &&
             std::find(not_these.begin(), not_these.end(), e.instance) == not_these.end();
    });
  }

  mode mode_ = mode::learned;
  std::vector<declared_range> declared_;
  double least_gap_ = 8192;
  double least_ratio_ = 1.5;
  bool spill_ = true;
  bool combined_ = true;
  double alpha_ = 1.0;
  double beta_ = 2.0;
  pd_words_taker words_;
  outside drops_;
  length_buckets::settings learning_;
  std::map<std::string, length_buckets, std::less<>> learned_;
  // Of the decision at hand.
  std::vector<std::string_view> prefills_;
  std::vector<std::string_view> answering_;
  std::vector<std::string_view> groups_;
  std::vector<length_buckets::member> members_;
  std::span<const range> ranges_;
  /// The decision whose prefill leg left the request to engines that do both.
  std::optional<std::uint64_t> left_to_both_;
};

}  // namespace

plugin_type pd_bucket_scorer() {
  return {"scorer-pd-bucket", "prompts of like length to the same PD groups; the least busy of them",
          "openFuyao hermes-router by its parameters; ranges after AIBrix (declared) and SMG (learned)",
          [](parameters& p) -> plugin_type::made { return std::make_unique<pd_bucket>(p); }};
}

}  // namespace infernex::router::plugins
