#include "actors/indexer/tracker.hpp"

#include <algorithm>

#include "messages/view.hpp"

namespace infernex::indexer {

struct tracker::model_state {
  explicit model_state(std::shared_ptr<kv_index> of) : index(std::move(of)), lookups(*index) {}
  std::shared_ptr<kv_index> index;
  kv_index::reader lookups;
  std::map<std::string, source, std::less<>> sources;
};

namespace {

std::optional<std::uint64_t> optional_of(const flatbuffers::Optional<std::uint64_t>& value) {
  return value ? std::optional(*value) : std::nullopt;
}

/// FlatBuffers does not check enums. A tier of later days is farther away than any known.
tier known_tier(tier said) { return said <= tier::Disk ? said : tier::Disk; }

}  // namespace

tracker::tracker(tracker_settings settings, std::shared_ptr<index_set> indexes)
    : settings_(settings), indexes_(std::move(indexes)) {}
tracker::~tracker() = default;

const source* tracker::find(std::string_view model, std::string_view instance) const {
  const auto at = models_.find(model);
  if (at == models_.end()) return nullptr;
  const auto it = at->second.sources.find(instance);
  return it == at->second.sources.end() ? nullptr : &it->second;
}

source* tracker::obtain(std::string_view model, std::string_view instance, time_point now) {
  if (const auto* known = find(model, instance)) return const_cast<source*>(known);
  const auto usable = [this](std::string_view name) {
    return !name.empty() && name.size() <= settings_.max_name_bytes;
  };
  auto index = usable(model) && usable(instance) ? indexes_->obtain(model) : nullptr;
  if (!index || !index->add_instance(instance)) {
    ++refused_;
    if (index && !models_.contains(model)) indexes_->drop(model);
    return nullptr;
  }
  auto& of = models_.try_emplace(std::string(model), std::move(index)).first->second;
  return &of.sources
              .try_emplace(std::string(instance), *of.index, std::string(instance), settings_.sync, counters_, now)
              .first->second;
}

void tracker::after(requests& out, std::string_view model, std::string_view instance, source& of,
                    time_point now) const {
  if (!bus_connected_ || !of.wants_request(now) || snapshots_under_way() >= settings_.sync.max_snapshots) return;
  if (of.take_request(now)) out.push_back({std::string(model), std::string(instance), of.request_reason()});
}

std::size_t tracker::snapshots_under_way() const {
  std::size_t count = 0;
  for (const auto& [model, state] : models_)
    for (const auto& [instance, of] : state.sources) count += of.awaits_snapshot();
  return count;
}

void tracker::ask_more(requests& out, time_point now) const {
  auto under_way = snapshots_under_way();
  for (const auto& [model, state] : models_)
    for (const auto& [instance, of] : state.sources) {
      if (under_way >= settings_.sync.max_snapshots) return;
      if (!of.wants_request(now) || !const_cast<source&>(of).take_request(now)) continue;
      out.push_back({model, instance, of.request_reason()});
      ++under_way;
    }
}

tracker::requests tracker::on_announce(const fb::EngineAnnounce& message, time_point now) {
  requests out;
  const auto model = text(message.model());
  const auto instance = text(message.instance());
  auto* of = message.origin() ? obtain(model, instance, now) : nullptr;
  if (!of) return out;
  // An engine that is still starting has just begun with an empty cache; what its agent remembers is the old one.
  const bool holds_nothing = message.state() == fb::EngineState::Down || message.state() == fb::EngineState::Starting;
  of->on_announce({message.origin()->epoch(), message.origin()->sequence(), holds_nothing,
                   optional_of(message.engine_epoch()), message.kv_sequence(), message.kv_keys(), message.kv_digest()},
                  now);
  after(out, model, instance, *of, now);
  return out;
}

tracker::requests tracker::on_delta(const fb::KvDelta& message, time_point now) {
  requests out;
  const auto model = text(message.model());
  const auto instance = text(message.instance());
  auto* of = message.origin() ? obtain(model, instance, now) : nullptr;
  if (!of) return out;
  of->on_delta({message.origin()->epoch(), message.origin()->sequence(), optional_of(message.engine_epoch()),
                message.cleared(), elements(message.removed()), elements(message.added()), message.kv_keys(),
                message.kv_digest(), known_tier(message.tier()), message.closed()},
               now);
  after(out, model, instance, *of, now);
  return out;
}

tracker::requests tracker::on_chunk(const fb::KvSnapshotChunk& message, time_point now) {
  requests out;
  const auto model = text(message.model());
  const auto instance = text(message.instance());
  auto* of = message.origin() ? const_cast<source*>(find(model, instance)) : nullptr;
  if (!of) return out;
  of->on_chunk({message.origin()->epoch(), optional_of(message.engine_epoch()), message.as_of(), message.index(),
                message.total(), elements(message.keys()), known_tier(message.tier()), message.closed()},
               now);
  if (!of->awaits_snapshot()) ask_more(out, now);
  return out;
}

tracker::requests tracker::on_tick(time_point now) {
  requests out;
  if (!bus_connected_) return out;
  for (auto m = models_.begin(); m != models_.end();) {
    auto& [model, state] = *m;
    for (auto s = state.sources.begin(); s != state.sources.end();) {
      if (s->second.forgotten(now)) {
        ++forgotten_;
        state.index->remove_instance(s->first);
        s = state.sources.erase(s);
        continue;
      }
      s->second.on_tick(now);
      after(out, model, s->first, s->second, now);
      ++s;
    }
    for (int step = 0; step < 8 && state.index->maintain();) ++step;
    if (state.sources.empty()) {
      indexes_->drop(model);
      m = models_.erase(m);
    } else {
      ++m;
    }
  }
  return out;
}

tracker::requests tracker::on_bus(bool connected, time_point now) {
  requests out;
  const bool back = connected && !bus_connected_;
  bus_connected_ = connected;
  if (!back) return out;
  for (auto& [model, state] : models_)
    for (auto& [instance, of] : state.sources) {
      of.on_bus_back(now);
      after(out, model, instance, of, now);
    }
  return out;
}

fb::KvMatchReplyT tracker::match(const fb::KvMatchQuery& query, time_point now) {
  fb::KvMatchReplyT reply;
  reply.model = text(query.model());
  const auto it = models_.find(reply.model);
  const std::size_t chains = query.chains() ? query.chains()->size() : 0;
  reply.matches.reserve(chains);
  const auto per_chain = chains == 0 ? 0 : std::max<std::size_t>(1, settings_.max_overlaps / chains);
  for (std::size_t i = 0; i < chains; ++i) {
    auto& answer = *reply.matches.emplace_back(std::make_unique<fb::KvMatchT>());
    if (it == models_.end()) continue;
    const auto found = it->second.lookups.lookup(elements(query.chains()->Get(static_cast<unsigned>(i))->keys()));
    for (const auto& m : found) {
      auto& overlap = *answer.overlaps.emplace_back(std::make_unique<fb::KvOverlapT>());
      overlap.instance = m.instance;
      overlap.blocks = m.blocks;
      if (m.device_blocks != m.blocks) overlap.device_blocks = m.device_blocks;
      if (m.host_blocks != m.blocks) overlap.host_blocks = m.host_blocks;
    }
    if (answer.overlaps.size() <= per_chain) continue;
    std::partial_sort(answer.overlaps.begin(), answer.overlaps.begin() + static_cast<std::ptrdiff_t>(per_chain),
                      answer.overlaps.end(), [](const auto& a, const auto& b) { return a->blocks > b->blocks; });
    answer.overlaps.resize(per_chain);
  }
  if (it == models_.end()) return reply;
  for (const auto& [instance, of] : it->second.sources) {
    auto& cover = *reply.coverage.emplace_back(std::make_unique<fb::KvCoverageT>());
    cover.instance = instance;
    cover.exact = of.exact(now);
    cover.sequence = of.sequence();
    cover.keys = it->second.index->keys_of(instance);
    cover.age_ms = static_cast<std::uint64_t>(of.age(now).count());
  }
  return reply;
}

bool tracker::awaits_snapshot(std::string_view model, std::string_view instance) const {
  const auto* of = find(model, instance);
  return of && of->awaits_snapshot();
}

std::vector<source_status> tracker::status(time_point now) const {
  std::vector<source_status> all;
  for (const auto& [model, state] : models_)
    for (const auto& [instance, of] : state.sources)
      all.push_back({model,
                     instance,
                     state.index->keys_of(instance),
                     state.index->digest_of(instance),
                     of.exact(now),
                     of.sequence(),
                     of.epoch(),
                     of.engine_epoch(),
                     of.last_heard(),
                     of.state(now),
                     {state.index->keys_of(instance, tier::Device), state.index->keys_of(instance, tier::Host),
                      state.index->keys_of(instance, tier::Disk)}});
  return all;
}

}  // namespace infernex::indexer
