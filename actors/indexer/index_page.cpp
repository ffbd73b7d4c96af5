#include "actors/indexer/index_page.hpp"

#include <algorithm>
#include <cstdio>

#include <boost/json.hpp>

namespace infernex::indexer {

index_page make_page(const tracker& from, const index_set& indexes, time_point now) {
  index_page page;
  page.sources = from.status(now);
  for (const auto& s : page.sources) {
    if (!page.models.empty() && page.models.back().name == s.model) continue;
    if (const auto index = indexes.find(s.model))
      page.models.push_back({s.model, index->distinct_keys(), index->bytes(), index->refused()});
  }
  return page;
}

std::span<const source_status> index_page::sources_of(std::string_view of_model) const {
  const auto first = std::ranges::lower_bound(sources, of_model, {}, &source_status::model);
  const auto last = std::ranges::upper_bound(sources, of_model, {}, &source_status::model);
  return {first, last};
}

std::size_t waiting_sources(const std::vector<source_status>& sources, const engine_directory& engines) {
  return static_cast<std::size_t>(std::ranges::count_if(sources, [&engines](const source_status& s) {
    const auto* engine = engines.find(s.model, s.instance);
    if (engine && !engine->holds_blocks()) return false;
    if (engine && engine->kv_health == fb::KvHealth::Replaying) return true;
    // Where the index is full, nothing more is coming.
    return !s.exact && s.state != sync_state::capped;
  }));
}

namespace {

std::string_view state_of(const source_status& s, const engine_entry* engine, const index_page& page, time_point now) {
  if (engine && !engine->holds_blocks()) return name(sync_state::down);
  // The page may be older than the silence.
  if (now - s.last_heard >= page.stale_after) return name(sync_state::stale);
  if (s.state != sync_state::exact || is_exact(s, engine)) return name(s.state);
  // It equals what the agent knows, which is not all.
  if (engine && engine->kv_health == fb::KvHealth::Partial) return "partial";
  if (engine && engine->kv_health == fb::KvHealth::Absent) return "absent";
  return name(sync_state::syncing);
}

}  // namespace

std::string to_json(const index_page& page, time_point now) {
  boost::json::array models;
  auto next = page.sources.begin();
  for (const auto& m : page.models) {
    boost::json::array instances;
    for (; next != page.sources.end() && next->model == m.name; ++next) {
      char digest[17];
      std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(next->digest));
      const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - next->last_heard).count();
      boost::json::value engine_epoch;
      if (next->engine_epoch) engine_epoch = *next->engine_epoch;
      const auto* of_model = page.engines ? page.engines->find(m.name) : nullptr;
      const auto* engine = of_model ? of_model->find(next->instance) : nullptr;
      boost::json::value url, engine_state, kv_health, reason;
      if (engine) {
        if (!engine->url.empty()) url = engine->url;
        engine_state = fb::EnumNameEngineState(engine->state);
        kv_health = fb::EnumNameKvHealth(engine->kv_health);
        reason = engine->reason;
      }
      instances.push_back({{"instance", next->instance},
                           {"keys", next->keys},
                           {"device_keys", next->tier_keys[0]},
                           {"host_keys", next->tier_keys[1]},
                           {"disk_keys", next->tier_keys[2]},
                           {"digest", digest},
                           {"exact", is_exact(*next, engine)},
                           {"sequence", next->sequence},
                           {"agent_epoch", next->agent_epoch},
                           {"engine_epoch", engine_epoch},
                           {"age_ms", std::max<std::int64_t>(age, 0)},
                           {"state", state_of(*next, engine, page, now)},
                           {"url", url},
                           {"engine_state", engine_state},
                           {"kv_health", kv_health},
                           {"reason", reason}});
    }
    models.push_back({{"model", m.name},
                      {"distinct_keys", m.distinct_keys},
                      {"bytes", m.bytes},
                      {"refused_keys", m.refused_keys},
                      {"instances", std::move(instances)}});
  }
  return boost::json::serialize(boost::json::object{{"models", std::move(models)}});
}

}  // namespace infernex::indexer
