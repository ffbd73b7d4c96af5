#include "actors/router/place.hpp"

#include <vector>

#include "actors/router/announced.hpp"
#include "messages/view.hpp"

namespace infernex::router {

namespace {

std::size_t key_count(const fb::RouteItem& item) { return item.keys() ? item.keys()->size() : 0; }

/// Only keys of tokens are in the index.
bool asks_index(const fb::RouteItem& item) { return item.key_mode() == fb::KeyMode::Token && key_count(item) != 0; }

std::size_t questions_in(const fb::RouteQuery& query) {
  std::size_t count = 0;
  if (query.items())
    for (const auto* item : *query.items()) count += asks_index(*item);
  return count;
}

std::vector<overlap> overlaps_of(const fb::KvMatch& match) {
  std::vector<overlap> found;
  if (!match.overlaps()) return found;
  found.reserve(match.overlaps()->size());
  for (const auto* o : *match.overlaps())
    found.push_back({text(o->instance()), o->blocks(), o->device_blocks().value_or(o->blocks()),
                     o->host_blocks().value_or(o->blocks())});
  return found;
}

void describe(const ranking& from, std::size_t i, fb::CandidateT& as) {
  const auto& one = from.ranked[i];
  as.instance = one.to->instance;
  as.url = one.to->url;
  as.total = one.total;
  as.overlap_blocks = one.overlap_blocks;
  if (one.device_blocks != one.overlap_blocks) {
    as.device_blocks = one.device_blocks;
    as.host_blocks = one.host_blocks;
  }
  as.predicted_blocks = one.predicted_blocks;
  as.health = one.to->health.why;
  if (one.to->data_parallel_rank) as.data_parallel_rank = *one.to->data_parallel_rank;
  const auto scores = from.scores_of(i);
  for (std::size_t s = 0; s < scores.size(); ++s) {
    auto& score = *as.scores.emplace_back(std::make_unique<fb::ScoreT>());
    score.scorer = from.scorers[s].name;
    score.value = scores[s];
    score.weight = from.scorers[s].weight;
  }
}

void describe_all(const ranking& from, std::vector<std::unique_ptr<fb::CandidateT>>& as) {
  for (std::size_t i = 0; i < from.ranked.size(); ++i)
    describe(from, i, *as.emplace_back(std::make_unique<fb::CandidateT>()));
}

void describe_left_out(const std::vector<dropped>& engines, std::vector<std::unique_ptr<fb::CandidateT>>& as) {
  for (const auto& one : engines) {
    auto& candidate = *as.emplace_back(std::make_unique<fb::CandidateT>());
    candidate.instance = one.to->instance;
    candidate.url = one.to->url;
    candidate.filtered_by = one.by;
    candidate.health = one.to->health.why;
    if (one.to->data_parallel_rank) candidate.data_parallel_rank = *one.to->data_parallel_rank;
  }
}

/// Under what a pair's prefill leg is kept in books that go by request.
std::string prefill_of(std::string_view request_id) { return std::string(request_id) + "/prefill"; }

void name_prefill(const endpoint& engine, fb::RouteChoiceT& into) {
  into.prefill_instance = engine.instance;
  into.prefill_url = engine.url;
  into.pd_group = engine.group;
  if (engine.data_parallel_rank) into.prefill_data_parallel_rank = *engine.data_parallel_rank;
}

}  // namespace

placer::placer(fleet& engines, reservation_book& open, prediction_index& predicted, prediction_book& routed,
               const policy& how, std::uint64_t seed)
    : engines_(engines),
      topology_(engines.topologies()),
      open_(open),
      predicted_(predicted),
      predictions_(predicted),
      routed_(routed),
      speeds_(engines.board()),
      how_(how),
      seed_(seed),
      scheduler_(make_scheduler(spec_of(how), seed)) {}

void placer::use(const scheduler_spec& config) {
  how_.config = config;
  scheduler_ = make_scheduler(spec_of(how_), seed_);
}

const topology& placer::present() {
  const auto& now = *topology_.get();
  if (now.version != followed_) predicted_.follow(now);
  followed_ = now.version;
  return now;
}

void placer::on_life(const fb::RequestLife& message, clock_point now) {
  if (const auto* started = message.started())
    for (const auto* id : *started) drop(text(id));
  if (const auto* finished = message.finished())
    for (const auto* one : *finished) {
      drop(text(one->request_id()));
      const bool pair = speeds_.knows(prefill_of(text(one->request_id())));
      settle_prediction(*one, pair, now);
      // After a retry it was answered by an engine whose conditions are not those on record.
      learn(text(one->request_id()), pair, one->attempts() > 1 ? std::nullopt : speed_result_of(*one));
    }
}

/// The gateway names the engine that answered; of a pair the prompt was computed by the other one. Of a pair that was
/// given up, or left for another, nobody says by which.
void placer::settle_prediction(const fb::Finished& one, bool pair, clock_point now) {
  const auto id = text(one.request_id());
  const auto instance = computed_by(text(one.instance()), one.status());
  if (!pair) return routed_.finished(id, instance, now);
  if (one.attempts() > 1 || instance.empty()) return routed_.finished(id, {}, now);
  routed_.finished_as_routed(id);
}

void placer::drop(std::string_view request_id) {
  open_.drop(request_id);
  open_.drop(prefill_of(request_id));
}

void placer::learn(std::string_view request_id, bool pair, const std::optional<speed_result>& answered) {
  if (!pair || !answered) {
    speeds_.finished(prefill_of(request_id), std::nullopt);
    return speeds_.finished(request_id, answered);
  }
  speeds_.finished(prefill_of(request_id), speed_result{answered->ttft_ms, {}, {}});
  speeds_.finished(request_id, speed_result{{}, answered->decode_ms, answered->output_tokens});
}

void placer::reserve(std::string_view request_id, slot_ref slot, load_share share, clock_point now) {
  speeds_.routed(request_id, conditions_of(engines_.board(), slot, share, now), now);
  open_.reserve(request_id, slot, share, now);
}

void placer::on_tick(clock_point now) {
  present();
  open_.expire(now);
  predicted_.expire(now);
  routed_.expire(now);
  speeds_.expire(now);
}

placer::fleet_counts placer::fleet_size() {
  fleet_counts counts;
  for (const auto& [name, model] : present().models) {
    counts.known += model.endpoints.size();
    counts.ready += model.ready_count();
    for (const auto& engine : model.endpoints) counts.in_flight += engines_.board().read(engine.slot, {}).in_flight;
  }
  return counts;
}

std::optional<fb::KvMatchQueryT> placer::question(const fb::RouteQuery& query) {
  if (!scheduler_->uses_cache() || questions_in(query) == 0) return std::nullopt;
  const auto* candidates = present().find(text(query.model()));
  if (!candidates || candidates->ready_count() == 0) return std::nullopt;
  fb::KvMatchQueryT asked;
  asked.model = candidates->model;
  for (const auto* item : *query.items()) {
    if (!asks_index(*item)) continue;
    auto& chain = *asked.chains.emplace_back(std::make_unique<fb::KvChainT>());
    const auto keys = elements(item->keys());
    chain.keys.assign(keys.begin(), keys.end());
  }
  return asked;
}

std::unique_ptr<fb::RouteChoiceT> placer::place_one(const fb::RouteItem& item, const model_endpoints* candidates,
                                                    overlaps cached, clock_point now, bool explain, gate* by,
                                                    std::span<const std::string_view> full) {
  std::vector<std::string_view> exclude(full.begin(), full.end());
  if (item.exclude())
    for (const auto* instance : *item.exclude()) exclude.push_back(text(instance));
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  if (item.headers())
    for (const auto* one : *item.headers()) headers.emplace_back(text(one->name()), text(one->value()));
  placement request{text(item.request_id()),
                    text(item.adapter()),
                    item.key_mode(),
                    optional_of(item.prompt_tokens()),
                    item.prompt_bytes(),
                    item.block_size(),
                    static_cast<std::uint32_t>(key_count(item)),
                    exclude,
                    elements(item.keys()),
                    optional_of(item.max_tokens()),
                    {},
                    0,
                    headers};
  const auto terms = terms_of(headers, how_.queue);
  request.tenant = terms.tenant;
  request.priority = terms.priority;
  if (by && candidates)
    if (auto instead = by->hold(item, request, *candidates, cached, disaggregates(), now)) {
      instead->strategy = scheduler_->name();
      return instead;
    }
  const auto keys = request.keys;
  if (predicts() && candidates && !keys.empty())
    cached.predicted = predictions_.lookup(candidates->model, request.key_mode, keys);
  const auto& decided = scheduler_->decide(request, candidates, engines_.board(), cached, now,
                                           explain ? scheduler::detail::every_candidate : scheduler::detail::brief);

  auto choice = std::make_unique<fb::RouteChoiceT>();
  choice->request_id = request.request_id;
  choice->strategy = scheduler_->name();
  choice->reason = decided.reason;
  choice->key_mode = request.key_mode;
  choice->block_size = request.block_size;
  choice->index_used = decided.index_used;
  if (request.prompt_tokens) choice->prompt_tokens = *request.prompt_tokens;
  if (candidates) choice->engines = static_cast<std::uint32_t>(candidates->endpoints.size());
  if (!decided.serving.ranked.empty()) choice->considered = static_cast<std::uint32_t>(decided.serving.candidates);
  describe_all(decided.serving, choice->candidates);
  if (explain) {
    describe_left_out(decided.left_out_engines, choice->candidates);
    describe_all(decided.prefill, choice->prefill_candidates);
  }
  if (decided.serving.ranked.empty()) return choice;
  const auto& chosen = decided.serving.ranked.front();
  const auto& computes = *decided.prefills();
  const bool pair = computes.to != chosen.to;
  if (!explain) {
    const load_share share{1, request.uncached_tokens(computes.expected_blocks()), request.prompt_blocks()};
    reserve(request.request_id, chosen.to->slot, pair ? load_share{1, 0, share.blocks} : share, now);
    if (pair) reserve(prefill_of(request.request_id), computes.to->slot, share, now);
  }
  choice->instance = chosen.to->instance;
  choice->url = chosen.to->url;
  choice->overlap_blocks = computes.overlap_blocks;
  choice->predicted_blocks = computes.predicted_blocks;
  choice->by_prediction = decided.by_prediction;
  if (chosen.to->data_parallel_rank) choice->data_parallel_rank = *chosen.to->data_parallel_rank;
  if (pair) name_prefill(*computes.to, *choice);
  if (predicts() && !explain)
    routed_.routed(request.request_id, candidates->model, request.key_mode, computes.to->instance,
                   {keys.begin(), keys.end()}, now);
  return choice;
}

std::unique_ptr<fb::RouteChoiceT> placer::place_waiting(const fb::RouteItem& item, std::string_view model,
                                                        const overlaps& cached, clock_point now,
                                                        std::span<const std::string_view> full) {
  return place_one(item, find(model), cached, now, false, nullptr, full);
}

fb::RouteDecisionT placer::place(const fb::RouteQuery& query, const match_answer& cached, clock_point now, gate* by) {
  const auto* candidates = present().find(text(query.model()));
  fb::RouteDecisionT out;
  out.model = candidates ? candidates->model : std::string(text(query.model()));
  std::string_view because = cached.unknown_because;
  const auto* matches = cached.reply ? cached.reply->matches() : nullptr;
  if (cached.reply && (matches ? matches->size() : 0) != questions_in(query)) {
    matches = nullptr;
    because = "the indexer's answer does not fit the question";
  } else if (matches && (!cached.reply->coverage() || cached.reply->coverage()->size() == 0)) {
    // An indexer that has just started knows no engine yet: that is not the same as "no engine caches this".
    matches = nullptr;
    because = "the model is not indexed";
  }
  if (!query.items()) return out;
  out.choices.reserve(query.items()->size());
  flatbuffers::uoffset_t next = 0;
  for (const auto* item : *query.items()) {
    std::vector<overlap> found;
    overlaps known{false, because, {}, {}};
    if (item->key_mode() == fb::KeyMode::Text) known.unknown_because = "keys of text are not indexed";
    if (matches && asks_index(*item)) {
      found = overlaps_of(*matches->Get(next++));
      known = {true, {}, found, {}};
    }
    out.choices.push_back(place_one(*item, candidates, known, now, query.explain(), by, {}));
  }
  return out;
}

}  // namespace infernex::router
