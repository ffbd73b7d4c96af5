#include "gateway/placing.hpp"

#include <algorithm>
#include <limits>

#include "gateway/text_keys.hpp"

namespace infernex::gateway {
namespace {

using header_views = std::vector<std::pair<std::string_view, std::string_view>>;

router::placement placement_of(const route_request& request, const std::vector<std::string_view>& exclude,
                               const header_views& headers) {
  router::placement p;
  p.request_id = request.request_id;
  p.adapter = request.adapter;
  p.key_mode = request.key_mode;
  p.prompt_tokens = request.prompt_tokens;
  p.prompt_bytes = request.prompt_bytes;
  p.block_size = request.block_size;
  p.blocks = static_cast<std::uint32_t>(request.keys.size());
  p.exclude = exclude;
  p.keys = request.keys;
  p.max_tokens = request.max_tokens;
  p.headers = headers;
  return p;
}

template <class T>
flatbuffers::Optional<T> optional_of(const std::optional<T>& value) {
  return value ? flatbuffers::Optional<T>(*value) : flatbuffers::nullopt;
}

template <class T>
std::optional<T> std_optional(const flatbuffers::Optional<T>& value) {
  return value ? std::optional<T>(*value) : std::nullopt;
}

flatbuffers::Optional<std::uint32_t> ms_left(const route_request& item, std::chrono::steady_clock::time_point now) {
  if (!item.ends_at || now == std::chrono::steady_clock::time_point::max()) return flatbuffers::nullopt;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*item.ends_at - now).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

std::size_t query_bytes(const route_request& request) {
  std::size_t header_bytes = 0;
  for (const auto& [name, value] : request.headers) header_bytes += name.size() + value.size() + 32;
  return std::min(request.keys.size(), max_query_keys) * sizeof(std::uint64_t) + 512 + header_bytes;
}

flatbuffers::DetachedBuffer encode_route_query(std::string_view source, std::uint64_t epoch, std::uint64_t sequence,
                                               std::string_view model, const std::vector<const route_request*>& items,
                                               std::chrono::steady_clock::time_point now) {
  flatbuffers::FlatBufferBuilder b(1024);
  const auto text = [&b](std::string_view s) { return b.CreateString(s.data(), s.size()); };
  std::vector<flatbuffers::Offset<fb::RouteItem>> rows;
  rows.reserve(items.size());
  for (const auto* item : items) {
    std::vector<flatbuffers::Offset<flatbuffers::String>> names;
    for (const auto& instance : item->exclude) names.push_back(text(instance));
    const auto id = text(item->request_id);
    const auto adapter = text(item->adapter);
    const auto keys = b.CreateVector(item->keys.data(), std::min(item->keys.size(), max_query_keys));
    const auto exclude = b.CreateVector(names);
    std::vector<flatbuffers::Offset<fb::RoutingHeader>> said;
    for (const auto& [name, value] : item->headers) said.push_back(fb::CreateRoutingHeader(b, text(name), text(value)));
    const auto headers = b.CreateVector(said);
    rows.push_back(fb::CreateRouteItem(b, id, adapter, item->key_mode, optional_of(item->prompt_tokens),
                                       item->prompt_bytes, item->block_size, keys, optional_of(item->max_tokens),
                                       exclude, headers, ms_left(*item, now)));
  }
  const auto origin = fb::CreateOrigin(b, text(source), epoch, sequence);
  const auto name = text(model);
  b.Finish(fb::CreateRouteQuery(b, origin, name, b.CreateVector(rows)), fb::RouteQueryIdentifier());
  return b.Release();
}

choice to_choice(const fb::RouteChoice& decided) {
  choice out;
  out.reason = text(decided.reason());
  out.index_used = decided.index_used();
  out.waits = decided.queueing() == fb::Queueing::Waiting;
  if (decided.queueing() == fb::Queueing::Shed)
    out.shed = shed_request{std::chrono::milliseconds(decided.retry_after_ms().value_or(1'000)),
                            decided.queued_ms().has_value()};
  if (text(decided.instance()).empty()) return out;
  out.ranked.push_back({std::string(text(decided.instance())), std::string(text(decided.url())),
                        decided.overlap_blocks(), decided.predicted_blocks(), decided.by_prediction(),
                        std_optional(decided.data_parallel_rank()), std::string(text(decided.prefill_instance())),
                        std::string(text(decided.prefill_url())), std::string(text(decided.pd_group()))});
  if (const auto* candidates = decided.candidates()) {
    for (const auto* c : *candidates) {
      if (text(c->instance()) == out.ranked.front().instance) continue;
      out.ranked.push_back({std::string(text(c->instance())), std::string(text(c->url())), c->overlap_blocks(),
                            c->predicted_blocks(), c->predicted_blocks() > c->overlap_blocks(),
                            std_optional(c->data_parallel_rank())});
    }
  }
  return out;
}

choice place(const route_request& request, const router::model_endpoints* candidates, const router::load_board& loads,
             const router::overlaps& cached, router::scheduler& by, router::clock_point now,
             const router::queue_settings& queue, std::span<const std::string_view> full) {
  std::vector<std::string_view> exclude(request.exclude.begin(), request.exclude.end());
  exclude.insert(exclude.end(), full.begin(), full.end());
  const header_views headers(request.headers.begin(), request.headers.end());
  auto asked = placement_of(request, exclude, headers);
  const auto terms = router::terms_of(headers, queue);
  asked.tenant = terms.tenant;
  asked.priority = terms.priority;
  const auto& decided = by.decide(asked, candidates, loads, cached, now);
  choice out;
  out.reason = decided.reason;
  out.index_used = decided.index_used;
  for (const auto& c : decided.serving.ranked) {
    out.ranked.push_back(
        {c.to->instance, c.to->url, c.overlap_blocks, c.predicted_blocks, c.by_prediction, c.to->data_parallel_rank});
  }
  if (!out.ranked.empty() && !decided.prefill.ranked.empty()) {
    // What is cached counts where the prompt is computed.
    auto& pair = out.ranked.front();
    const auto& prefill = decided.prefill.ranked.front();
    pair.overlap_blocks = prefill.overlap_blocks;
    pair.predicted_blocks = prefill.predicted_blocks;
    pair.by_prediction = prefill.by_prediction;
    pair.prefill_instance = prefill.to->instance;
    pair.prefill_url = prefill.to->url;
    pair.pd_group = prefill.to->group;
  }
  return out;
}

void name_groups(std::vector<candidate>& ranked, const router::model_endpoints& model) {
  bool alone = false;
  for (auto& c : ranked) {
    const auto* at = c.pair() ? nullptr : model.find(c.instance);
    if (!at || at->role != fb::EngineRole::Decode) continue;
    c.pd_group = at->group;
    if (&c == &ranked.front()) alone = true;
    c.group_prefills = !alone && c.by_group();
  }
}

choice place_by_load(const route_request& request, const router::model_endpoints* candidates,
                     const router::load_board& loads, router::scheduler& by, router::clock_point now,
                     std::string_view why) {
  auto out = place(request, candidates, loads, {false, why, {}, {}}, by, now);
  out.reason = std::string(why) + "; by load only: " + out.reason;
  out.by_fallback = true;
  return out;
}

std::optional<std::uint32_t> expected_blocks(const candidate& chosen, bool index_used, const router::endpoint* at) {
  if (chosen.by_prediction) return chosen.predicted_blocks;
  if (index_used && at && at->kv_health == fb::KvHealth::Live) return chosen.overlap_blocks;
  return std::nullopt;
}

bool someone_ready(const route_request& request, const router::model_endpoints* candidates) {
  return candidates && std::any_of(candidates->endpoints.begin(), candidates->endpoints.end(), [&](const auto& e) {
           return e.takes_requests() &&
                  std::find(request.exclude.begin(), request.exclude.end(), e.instance) == request.exclude.end();
         });
}

router::load_share share_of(const route_request& request, std::uint32_t cached_blocks) {
  const auto p = placement_of(request, {}, {});
  return {1, p.uncached_tokens(cached_blocks), p.prompt_blocks()};
}

std::uint64_t cost_of(const route_request& request) { return router::cost_of(placement_of(request, {}, {})); }

std::uint32_t cached_tokens(const route_request& request, std::uint32_t blocks,
                            std::optional<std::uint32_t> prompt_tokens) {
  const auto tokens = std::uint64_t{blocks} * request.block_size;
  if (request.key_mode == fb::KeyMode::Token || !prompt_tokens || request.prompt_bytes == 0)
    return static_cast<std::uint32_t>(tokens);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(*prompt_tokens, blocks * text_piece_bytes * *prompt_tokens / request.prompt_bytes));
}

}  // namespace infernex::gateway
