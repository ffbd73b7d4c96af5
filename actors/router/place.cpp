#include "actors/router/place.hpp"

#include <vector>

#include "messages/view.hpp"

namespace infernex::router {

namespace {

template <class T>
std::optional<T> optional_of(const flatbuffers::Optional<T>& value) {
  return value ? std::optional<T>(*value) : std::nullopt;
}

std::size_t key_count(const fb::RouteItem& item) { return item.keys() ? item.keys()->size() : 0; }

std::size_t items_with_keys(const fb::RouteQuery& query) {
  std::size_t count = 0;
  if (query.items())
    for (const auto* item : *query.items()) count += key_count(*item) != 0;
  return count;
}

std::vector<overlap> overlaps_of(const fb::KvMatch& match) {
  std::vector<overlap> found;
  if (!match.overlaps()) return found;
  found.reserve(match.overlaps()->size());
  for (const auto* o : *match.overlaps()) found.push_back({text(o->instance()), o->blocks()});
  return found;
}

}  // namespace

placer::placer(fleet& engines, reservation_book& open, policy how)
    : engines_(engines), topology_(engines.topologies()), open_(open), how_(how) {}

const model_endpoints* placer::find(const fb::RouteQuery& query) { return topology_.get()->find(text(query.model())); }

placer::fleet_counts placer::fleet_size() {
  fleet_counts counts;
  for (const auto& [name, model] : topology_.get()->models) {
    counts.known += model.endpoints.size();
    counts.ready += model.ready_count();
  }
  return counts;
}

std::optional<fb::KvMatchQueryT> placer::question(const fb::RouteQuery& query) {
  if (how_.how != strategy::kv_aware || items_with_keys(query) == 0) return std::nullopt;
  const auto* candidates = find(query);
  if (!candidates || candidates->ready_count() == 0) return std::nullopt;
  fb::KvMatchQueryT asked;
  asked.model = candidates->model;
  for (const auto* item : *query.items()) {
    if (key_count(*item) == 0) continue;
    auto& chain = *asked.chains.emplace_back(std::make_unique<fb::KvChainT>());
    const auto keys = elements(item->keys());
    chain.keys.assign(keys.begin(), keys.end());
  }
  return asked;
}

std::unique_ptr<fb::RouteChoiceT> placer::place_one(const fb::RouteItem& item, const model_endpoints* candidates,
                                                    const overlaps& cached, clock_point now) {
  std::vector<std::string_view> exclude;
  if (item.exclude())
    for (const auto* instance : *item.exclude()) exclude.push_back(text(instance));
  const placement request{text(item.request_id()),
                          text(item.adapter()),
                          item.key_mode(),
                          optional_of(item.prompt_tokens()),
                          item.prompt_bytes(),
                          item.block_size(),
                          static_cast<std::uint32_t>(key_count(item)),
                          exclude};
  const auto decided = decide(request, candidates, engines_.board(), cached, how_, turn_, now);

  auto choice = std::make_unique<fb::RouteChoiceT>();
  choice->request_id = request.request_id;
  choice->strategy = name(how_.how);
  choice->reason = decided.reason;
  choice->key_mode = request.key_mode;
  choice->block_size = request.block_size;
  choice->index_used = decided.index_used;
  if (request.prompt_tokens) choice->prompt_tokens = *request.prompt_tokens;
  if (decided.ranked.empty()) return choice;
  const auto& chosen = decided.ranked.front();
  open_.reserve(request.request_id, chosen.to->slot, {1, expected_prefill(request, chosen.overlap_blocks)}, now);
  choice->instance = chosen.to->instance;
  choice->url = chosen.to->url;
  choice->overlap_blocks = chosen.overlap_blocks;
  for (const auto& one : decided.ranked) {
    auto& candidate = *choice->candidates.emplace_back(std::make_unique<fb::CandidateT>());
    candidate.instance = one.to->instance;
    candidate.url = one.to->url;
    candidate.total = one.total;
    candidate.overlap_blocks = one.overlap_blocks;
    for (const auto& part : one.parts) {
      auto& score = *candidate.scores.emplace_back(std::make_unique<fb::ScoreT>());
      score.scorer = part.scorer;
      score.value = part.value;
    }
  }
  return choice;
}

fb::RouteDecisionT placer::place(const fb::RouteQuery& query, const match_answer& cached, clock_point now) {
  const auto* candidates = find(query);
  fb::RouteDecisionT out;
  out.model = candidates ? candidates->model : std::string(text(query.model()));
  std::string_view because = cached.unknown_because;
  const auto* matches = cached.reply ? cached.reply->matches() : nullptr;
  if (cached.reply && (matches ? matches->size() : 0) != items_with_keys(query)) {
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
    overlaps known{false, because, {}};
    if (matches && key_count(*item) != 0) {
      found = overlaps_of(*matches->Get(next++));
      known = {true, {}, found};
    }
    out.choices.push_back(place_one(*item, candidates, known, now));
  }
  return out;
}

}  // namespace infernex::router
