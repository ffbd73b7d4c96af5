#include "actors/router/scheduler.hpp"

#include <algorithm>

#include "actors/router/candidate_rows.hpp"
#include "actors/router/reason.hpp"
#include "actors/router/scheduler_build.hpp"

namespace infernex::router {

namespace {

bool contains(std::span<const std::string_view> all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Which roles may serve a leg unless a filter chooses by role itself.
bool role_fits(fb::EngineRole role, profile_runner::leg which, bool disaggregates) {
  if (which == profile_runner::leg::prefill) return role == fb::EngineRole::Prefill;
  return role == fb::EngineRole::Aggregated || (disaggregates && role == fb::EngineRole::Decode);
}

}  // namespace

struct scheduler::impl final : profile_runner {
  built_scheduler built;
  random_source random;
  /// Where turns begin, and how far each model's have come.
  std::uint64_t first_turn;
  std::map<std::string, std::uint64_t, std::less<>> turns;
  std::uint64_t number = 0;

  // Of the decision at hand; kept, so that the next one allocates nothing.
  decision out;
  std::vector<candidate> rows;
  row_finder by_name;
  std::vector<candidate> kept[2];
  const std::vector<candidate>* latest = &rows;
  std::vector<double> matrix;
  std::vector<double> sums;
  std::vector<std::uint32_t> order;
  decision_context* context = nullptr;
  std::optional<candidate> chosen[2];
  const built_profile* used[2] = {nullptr, nullptr};
  left_out why;
  bool every_candidate = false;
  /// How many of the engines left out are so whatever the profile.
  std::size_t unfit = 0;

  impl(built_scheduler from, std::uint64_t seed) : built(std::move(from)), random(seed), first_turn(seed - 1) {}

  std::uint64_t& turn_of(const std::string& model) {
    constexpr std::size_t most_models = 4'096;
    const auto known = turns.find(model);
    if (known != turns.end()) return known->second;
    if (turns.size() >= most_models) turns.clear();
    return turns.emplace(model, first_turn).first->second;
  }

  void make_rows(const placement& request, const model_endpoints& model, const load_board& loads, clock_point now) {
    rows.clear();
    for (const auto& e : model.endpoints) {
      std::string_view by;
      if (!e.ready()) {
        ++why.by_state[std::min<std::size_t>(static_cast<std::size_t>(e.state), why.by_state.size() - 1)];
        by = fb::EnumNameEngineState(e.state);
      } else if (e.health.isolated()) {
        ++why.isolated;
        by = e.health.why;
      } else if (!request.adapter.empty() &&
                 std::find(e.adapters.begin(), e.adapters.end(), request.adapter) == e.adapters.end()) {
        ++why.without_adapter;
        by = "without the adapter";
      } else if (contains(request.exclude, e.instance)) {
        ++why.excluded;
        by = "excluded after failing it";
      } else {
        rows.push_back({&e, loads.read(e.slot, now)});
        continue;
      }
      if (every_candidate) out.left_out_engines.push_back({&e, by});
    }
  }

  void note_dropped(const std::vector<candidate>& before, const std::vector<candidate>& after, std::string_view by) {
    std::size_t i = 0;
    for (const auto& c : before) {
      if (i < after.size() && after[i].to == c.to)
        ++i;
      else
        out.left_out_engines.push_back({c.to, by});
    }
  }

  /// The rows that a profile may choose among: those that fit the leg and pass its filters. Where that is all of them
  /// they are not copied.
  std::vector<candidate>& choosable(const built_profile& profile, leg which, std::string_view group,
                                    std::string_view address) {
    const bool disaggregates = built.handler->disaggregates();
    const auto fits = [&](const candidate& c) {
      return (group.empty() || c.to->group == group) && (address.empty() || c.to->address() == address) &&
             (profile.by_role || role_fits(c.to->role, which, disaggregates));
    };
    const auto keeps_all = [&](const named<filter>& f) { return f.plugin->keeps_all(*context, rows); };
    if (std::all_of(rows.begin(), rows.end(), fits) &&
        std::all_of(profile.filters.begin(), profile.filters.end(), keeps_all))
      return rows;
    auto& all = kept[static_cast<std::size_t>(which)];
    all.clear();
    for (const auto& c : rows) {
      if (fits(c)) {
        all.push_back(c);
        continue;
      }
      if (which == leg::decode) ++why.other_role;
      if (every_candidate && which == leg::decode && !disaggregates)
        out.left_out_engines.push_back({c.to, "another role"});
    }
    std::vector<candidate> before;
    for (const auto& f : profile.filters) {
      if (every_candidate) before = all;
      const auto count = all.size();
      f.plugin->apply(*context, all);
      why.filtered += static_cast<std::uint32_t>(count - all.size());
      if (every_candidate && which == leg::decode) note_dropped(before, all, f.name);
    }
    return all;
  }

  void score(const built_profile& profile, const std::vector<candidate>& all) {
    matrix.resize(all.size() * profile.scorers.size());
    sums.assign(all.size(), 0.0);
    for (std::size_t s = 0; s < profile.scorers.size(); ++s) {
      const auto column = std::span(matrix).subspan(s * all.size(), all.size());
      profile.scorers[s].plugin->score(*context, all, column);
      fill_unmeasured(column);
      const double weight = profile.scorers[s].weight;
      for (std::size_t i = 0; i < all.size(); ++i) sums[i] += weight * column[i];
    }
    const bool costs = profile.picker->takes_least();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const auto factor = all[i].to->health.score_factor; factor != 1) sums[i] = made_worse(sums[i], factor, costs);
  }

  void rank(const built_profile& profile, const std::vector<candidate>& all, ranking& into) {
    order.clear();
    const auto keep = every_candidate ? all.size() : std::size_t{1} + built.runners_up;
    profile.picker->pick(*context, all, sums, keep, order);
    into.candidates = all.size();
    into.ranked.clear();
    into.scores.clear();
    into.scorers.clear();
    for (const auto& s : profile.scorers) into.scorers.push_back({s.name, s.weight});
    for (const auto i : order) {
      const auto& c = all[i];
      into.ranked.push_back({c.to, sums[i], c.held_blocks, c.device_blocks, c.host_blocks, c.predicted_blocks,
                             c.predicted_blocks > c.held_blocks});
      for (std::size_t s = 0; s < profile.scorers.size(); ++s) into.scores.push_back(matrix[s * all.size() + i]);
    }
  }

  ranking& result_of(leg which) { return which == leg::decode ? out.serving : out.prefill; }

  bool run(std::string_view name, leg which, std::string_view group, std::string_view address) override {
    const auto* profile = built.find(name);
    if (!profile) return false;
    const auto w = static_cast<std::size_t>(which);
    context->leg = which;
    // While there are offers, nobody is chosen yet.
    context->partner = context->offers ? nullptr : best(which == leg::decode ? leg::prefill : leg::decode);
    if (which == leg::decode) {  // a handler may run it again
      out.left_out_engines.resize(std::min(out.left_out_engines.size(), unfit));
      why.filtered = why.other_role = 0;
    }
    const auto& all = choosable(*profile, which, group, address);
    latest = &all;
    sums.clear();
    auto& into = result_of(which);
    used[w] = profile;
    chosen[w].reset();
    into.ranked.clear();
    into.candidates = all.size();
    if (all.empty()) return false;
    score(*profile, all);
    rank(*profile, all, into);
    if (order.empty()) {  // the picker takes none of them
      why.filtered += static_cast<std::uint32_t>(all.size());
      return false;
    }
    chosen[w] = all[order.front()];
    return true;
  }

  const candidate* best(leg which) const override {
    const auto& one = chosen[static_cast<std::size_t>(which)];
    return one ? &*one : nullptr;
  }

  void drop(leg which) override {
    chosen[static_cast<std::size_t>(which)].reset();
    result_of(which).ranked.clear();
  }

  std::span<const candidate> considered() const override { return *latest; }
  std::span<const double> totals() const override { return sums; }
  void offer(const prefill_offers* from) override { context->offers = from; }
  void weighed(const pair_weights& what) override { out.weighed = what; }

  void clear() {
    out.weighed.reset();
    out.serving.ranked.clear();
    out.prefill.ranked.clear();
    out.reason.clear();
    out.left_out_engines.clear();
    out.index_used = out.by_prediction = false;
    chosen[0].reset();
    chosen[1].reset();
    why = {};
  }
};

scheduler::scheduler(std::unique_ptr<impl> state) : impl_(std::move(state)) {}
scheduler::~scheduler() = default;

std::unique_ptr<scheduler> scheduler::make(const scheduler_spec& spec, std::vector<spec_problem>& problems,
                                           std::uint64_t seed) {
  const auto before = problems.size();
  auto built = build(spec, problems);
  if (problems.size() != before) return nullptr;
  return std::unique_ptr<scheduler>(new scheduler(std::make_unique<impl>(std::move(built), seed)));
}

bool scheduler::uses_cache() const { return impl_->built.uses_cache; }
bool scheduler::disaggregates() const { return impl_->built.handler->disaggregates(); }
const std::string& scheduler::name() const { return impl_->built.name; }

const decision& scheduler::decide(const placement& request, const model_endpoints* model, const load_board& loads,
                                  const overlaps& cached, clock_point now, detail how_much) {
  auto& s = *impl_;
  auto& out = s.out;
  s.clear();
  s.every_candidate = how_much == detail::every_candidate;
  if (!model) {
    out.reason = "no engine of this model has been announced";
    return out;
  }
  const bool looks = s.built.uses_cache && request.blocks != 0;
  auto& turn = s.turn_of(model->model);
  decision_context context{request, *model, now, looks && cached.known, turn, s.random};
  context.number = ++s.number;
  // An explanation leaves turns and chance as they were.
  std::optional<random_source> before;
  if (s.every_candidate)
    before = s.random;
  else
    ++turn;
  s.context = &context;
  s.make_rows(request, *model, loads, now);
  s.unfit = out.left_out_engines.size();
  if (looks) fill_overlaps(s.rows, cached, request.blocks, s.by_name);
  s.built.handler->handle(context, s);
  if (before) s.random = *before;
  s.context = nullptr;
  if (out.serving.ranked.empty()) {
    append_reason_for_none(out.reason, *model, request.adapter, s.why);
    return out;
  }
  out.index_used = context.index_known;
  out.by_prediction = out.prefills()->by_prediction;
  for (const auto which : {profile_runner::leg::decode, profile_runner::leg::prefill}) {
    if (s.every_candidate) break;  // nobody is routed by it
    const auto w = static_cast<std::size_t>(which);
    if (!s.chosen[w]) continue;
    context.leg = which;
    context.partner =
        s.best(which == profile_runner::leg::decode ? profile_runner::leg::prefill : profile_runner::leg::decode);
    for (auto* p : s.used[w]->members) p->routed(context, *s.chosen[w]);
  }
  append_reason_for_choice(out.reason,
                           {s.built.name, s.built.uses_cache, s.used[0]->picker->in_turn(), request.blocks,
                            request.uncached_tokens(out.prefills()->expected_blocks())},
                           out, s.chosen[0]->load, cached.known ? std::string_view{} : cached.unknown_because);
  return out;
}

void rank_by_total(const decision_context& context, std::span<const double> totals, std::size_t keep, bool lowest_first,
                   std::vector<std::uint32_t>& order) {
  if (totals.empty() || keep == 0) return;
  const auto better = [&](double a, double b) { return lowest_first ? a < b : a > b; };
  auto next = static_cast<std::size_t>(context.turn % totals.size());
  for (std::size_t n = 0; n < totals.size(); ++n) {
    const auto i = static_cast<std::uint32_t>(next);
    next = next + 1 == totals.size() ? 0 : next + 1;
    if (order.size() == keep && !better(totals[i], totals[order.back()])) continue;
    const auto at =
        std::find_if(order.begin(), order.end(), [&](std::uint32_t o) { return better(totals[i], totals[o]); });
    order.insert(at, i);
    if (order.size() > keep) order.pop_back();
  }
}

}  // namespace infernex::router
