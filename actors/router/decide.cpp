#include "actors/router/decide.hpp"

#include <algorithm>
#include <cmath>

#include "actors/router/reason.hpp"

namespace infernex::router {

namespace {

constexpr double neutral = 0.5;

constexpr double unmeasured = -1;

/// Requests are scored against the busiest candidate, but never against fewer than these: one request more or
/// less on an idle fleet must not outweigh a cached prefix.
constexpr std::uint32_t smallest_scale = 8;

/// One engine that passed the filters, with what the scores are made from. Small: there may be thousands.
struct candidate {
  const endpoint* to;
  double kv_usage = unmeasured;
  double waiting = unmeasured;
  std::uint32_t in_flight = 0;
  /// Null: none.
  const overlap* held = nullptr;
  std::uint32_t predicted_blocks = 0;
  /// The blocks held weighed by tier, or those predicted, whichever is more.
  double worth = 0;
  double total = 0;
};

bool contains(std::span<const std::string_view> all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// Engines that can take the request; the others are counted by why not.
std::vector<candidate> filter(const placement& request, const model_endpoints& of, left_out& why) {
  std::vector<candidate> fit;
  fit.reserve(of.endpoints.size());
  for (const auto& e : of.endpoints) {
    if (!e.ready())
      ++why.by_state[std::min<std::size_t>(static_cast<std::size_t>(e.state), why.by_state.size() - 1)];
    else if (e.role != fb::EngineRole::Aggregated)
      ++why.other_role;
    else if (!request.adapter.empty() &&
             std::find(e.adapters.begin(), e.adapters.end(), request.adapter) == e.adapters.end())
      ++why.without_adapter;
    else if (contains(request.exclude, e.instance))
      ++why.excluded;
    else
      fit.push_back({&e});
  }
  return fit;
}

/// What single values are scored against.
struct scales {
  std::uint32_t most_waiting = smallest_scale;
  std::uint32_t most_in_flight = smallest_scale;
  /// The score of an engine that was not measured: the mean of the others, so neither best nor worst.
  double kv_usage_score = neutral;
  double waiting_score = neutral;
  std::uint32_t blocks = 0;
};

double against(double value, std::uint32_t most) { return 1.0 - value / most; }

double overlap_score(const candidate& c, const scales& s) { return s.blocks == 0 ? 0.0 : c.worth / s.blocks; }
double kv_usage_score(const candidate& c, const scales& s) {
  return c.kv_usage == unmeasured ? s.kv_usage_score : 1.0 - c.kv_usage;
}
double waiting_score(const candidate& c, const scales& s) {
  return c.waiting == unmeasured ? s.waiting_score : against(c.waiting, s.most_waiting);
}
double in_flight_score(const candidate& c, const scales& s) { return against(c.in_flight, s.most_in_flight); }

struct scorer {
  std::string_view name;
  double (*score)(const candidate&, const scales&);
  double weight;
};

scales read_loads(std::vector<candidate>& all, const load_board& loads, clock_point now) {
  scales out;
  double kv_usage_sum = 0;
  double waiting_sum = 0;
  std::size_t with_kv_usage = 0;
  std::size_t with_waiting = 0;
  for (auto& c : all) {
    const auto load = loads.read(c.to->slot, now);
    c.in_flight = load.in_flight;
    out.most_in_flight = std::max(out.most_in_flight, load.in_flight);
    if (load.kv_usage && std::isfinite(*load.kv_usage)) {
      c.kv_usage = std::clamp(*load.kv_usage, 0.0, 1.0);
      kv_usage_sum += c.kv_usage;
      ++with_kv_usage;
    }
    if (load.waiting) {
      c.waiting = *load.waiting;
      out.most_waiting = std::max(out.most_waiting, *load.waiting);
      waiting_sum += c.waiting;
      ++with_waiting;
    }
  }
  if (with_kv_usage != 0) out.kv_usage_score = 1.0 - kv_usage_sum / static_cast<double>(with_kv_usage);
  if (with_waiting != 0) out.waiting_score = against(waiting_sum / static_cast<double>(with_waiting), out.most_waiting);
  return out;
}

/// Weights are relative; a bound keeps every total finite.
double usable(double weight) { return std::isfinite(weight) && weight > 0 ? std::min(weight, 1e6) : 0; }

double share(double weight) { return std::isfinite(weight) ? std::clamp(weight, 0.0, 1.0) : 0.0; }

/// Blocks by tier: device + w_host * (host - device) + w_disk * (blocks - host), the device's weighed as well.
double weigh(const overlap& o, const tier_weights& by, std::uint32_t blocks) {
  const auto all = std::min(o.blocks, blocks);
  const auto host = std::min(o.host_blocks, all);
  const auto device = std::min(o.device_blocks, host);
  return share(by.device) * device + share(by.host) * (host - device) + share(by.disk) * (all - host);
}

/// `all` is in the order of the endpoints, which is that of instance names.
template <class Use>
void each_known(std::vector<candidate>& all, std::span<const overlap> found, Use use) {
  for (const auto& o : found) {
    const auto it = std::lower_bound(all.begin(), all.end(), o.instance, [](const candidate& c, std::string_view name) {
      return c.to->instance.compare(name) < 0;
    });
    if (it != all.end() && it->to->instance == o.instance) use(*it, o);
  }
}

void read_overlaps(std::vector<candidate>& all, const overlaps& cached, const tier_weights& tiers,
                   std::uint32_t blocks) {
  if (cached.known) {
    each_known(all, cached.found, [&](candidate& c, const overlap& o) {
      c.held = &o;
      c.worth = weigh(o, tiers, blocks);
    });
  }
  each_known(all, cached.predicted, [&](candidate& c, const overlap& o) {
    c.predicted_blocks = std::min(o.blocks, blocks);
    c.worth = std::max(c.worth, share(tiers.device) * c.predicted_blocks);
  });
}

/// The prediction is worth more than what the index knows.
bool by_prediction(const candidate& c, const tier_weights& tiers, std::uint32_t blocks) {
  return c.predicted_blocks != 0 &&
         (!c.held || share(tiers.device) * c.predicted_blocks > weigh(*c.held, tiers, blocks));
}

scored scored_of(const candidate& c, const policy& how, std::uint32_t blocks) {
  scored out;
  out.to = c.to;
  out.total = c.total;
  if (c.held) {
    out.overlap_blocks = std::min(c.held->blocks, blocks);
    out.host_blocks = std::min(c.held->host_blocks, out.overlap_blocks);
    out.device_blocks = std::min(c.held->device_blocks, out.host_blocks);
  }
  out.predicted_blocks = c.predicted_blocks;
  out.by_prediction = by_prediction(c, how.tiers, blocks);
  return out;
}

/// The first `keep` in order of total; equal totals in the order of the turn.
std::vector<const candidate*> rank(const std::vector<candidate>& all, std::size_t keep, std::uint64_t turn) {
  std::vector<const candidate*> best;
  best.reserve(std::min(keep, all.size()) + 1);
  auto next = static_cast<std::size_t>(turn % all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& c = all[next];
    next = next + 1 == all.size() ? 0 : next + 1;
    if (best.size() == keep && c.total <= best.back()->total) continue;
    const auto at = std::find_if(best.begin(), best.end(), [&c](const candidate* b) { return b->total < c.total; });
    best.insert(at, &c);
    if (best.size() > keep) best.pop_back();
  }
  return best;
}

}  // namespace

std::string_view name(strategy s) {
  switch (s) {
    case strategy::round_robin:
      return "round-robin";
    case strategy::least_load:
      return "least-load";
    case strategy::kv_aware:
      return "kv-aware";
  }
  return "unknown";
}

decision decide(const placement& request, const model_endpoints* candidates, const load_board& loads,
                const overlaps& cached, const policy& how, rotation& turn, clock_point now) {
  decision out;
  if (!candidates) {
    out.reason = "no engine of this model has been announced";
    return out;
  }
  left_out why;
  auto all = filter(request, *candidates, why);
  if (all.empty()) {
    out.reason = reason_for_none(*candidates, request.adapter, why);
    return out;
  }
  scales against_all;
  std::vector<scorer> scorers;
  if (how.how != strategy::round_robin) {
    against_all = read_loads(all, loads, now);
    scorers = {{"kv-usage", kv_usage_score, usable(how.weight_kv_usage)},
               {"waiting", waiting_score, usable(how.weight_waiting)},
               {"in-flight", in_flight_score, usable(how.weight_in_flight)}};
  }
  if (how.how == strategy::kv_aware && request.blocks != 0 && (cached.known || !cached.predicted.empty())) {
    out.index_used = cached.known;
    against_all.blocks = request.blocks;
    read_overlaps(all, cached, how.tiers, request.blocks);
    scorers.insert(scorers.begin(), {"overlap", overlap_score, usable(how.weight_overlap)});
  }
  for (const auto& s : scorers)
    if (s.weight != 0)
      for (auto& c : all) c.total += s.weight * s.score(c, against_all);

  const auto best = rank(all, std::size_t{1} + how.runners_up, turn.turn++);
  out.ranked.reserve(best.size());
  for (const auto* c : best) {
    auto& one = out.ranked.emplace_back(scored_of(*c, how, request.blocks));
    one.parts.reserve(scorers.size());
    for (const auto& s : scorers) one.parts.push_back({s.name, s.score(*c, against_all)});
  }
  const auto& chosen = out.ranked.front();
  out.by_prediction = chosen.by_prediction;
  out.reason =
      reason_for_choice({how.how, loads.read(chosen.to->slot, now), request.blocks, out.index_used, all.size()}, chosen,
                        cached.known ? std::string_view{} : cached.unknown_because);
  return out;
}

std::uint64_t expected_prefill(const placement& request, std::uint32_t cached_blocks) {
  // Without a count, four bytes a token: the usual mean of English text in current vocabularies.
  const std::uint64_t prompt = request.prompt_tokens ? *request.prompt_tokens : request.prompt_bytes / 4;
  const auto cached = std::uint64_t{cached_blocks} * request.block_size;
  return cached >= prompt ? 0 : prompt - cached;
}

}  // namespace infernex::router
