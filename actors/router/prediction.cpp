#include "actors/router/prediction.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace infernex::router {

namespace {

/// As many as a kv_index can tell apart.
constexpr std::uint32_t max_instances = 3'840;
/// Expired entries are looked for this often.
constexpr std::chrono::milliseconds expiry_interval{50};
/// An engine without predictions keeps its memory for this long.
constexpr std::chrono::seconds idle_before_release{60};

/// Announced sizes above this are taken for this; keeps products finite.
constexpr std::uint64_t most_blocks = 1ULL << 31;

std::size_t position(fb::KeyMode mode) { return mode == fb::KeyMode::Token ? 1 : 0; }

}  // namespace

struct prediction_index::engine_state {
  std::optional<std::uint64_t> epoch;
  std::chrono::milliseconds ttl[2]{};
  std::uint32_t bound[2]{};
  recent_keys recent[2];
  clock_point last_used[2];
};

struct prediction_index::model_state {
  /// Made with the first prediction.
  std::shared_ptr<store> indexes;
  std::map<std::string, engine_state, std::less<>> engines;
};

prediction_index::store::store(const std::shared_ptr<indexer::byte_budget>& budget)
    : by_mode{indexer::kv_index({max_instances, budget->max()}, budget),
              indexer::kv_index({max_instances, budget->max()}, budget)} {}

prediction_index::prediction_index(prediction_settings how)
    : how_(how), budget_(std::make_shared<indexer::byte_budget>(how.max_bytes - how.book_bytes())) {
  publish();
}
prediction_index::~prediction_index() = default;

void prediction_index::publish() {
  auto next = std::make_shared<store_map>();
  for (const auto& [name, of] : models_)
    if (of.indexes) next->emplace(name, of.indexes);
  published_.publish(std::move(next));
}

prediction_index::engine_state* prediction_index::find(std::string_view model, std::string_view instance,
                                                       model_state*& of) {
  const auto m = models_.find(model);
  if (m == models_.end()) return nullptr;
  of = &m->second;
  const auto e = of->engines.find(instance);
  return e == of->engines.end() ? nullptr : &e->second;
}

void prediction_index::forget(model_state& of, const std::string& instance, engine_state& engine) {
  for (std::size_t m : {0U, 1U}) {
    auto& recent = engine.recent[m];
    if (recent.capacity() == 0) continue;
    of.indexes->by_mode[m].remove_instance(instance);
    count_.entries -= recent.size();
    budget_->give_back(recent_keys::footprint(recent.capacity()));
    recent.resize(0);
  }
}

void prediction_index::follow(const topology& present) {
  bool models_gone = false;
  for (auto m = models_.begin(); m != models_.end();) {
    const auto now = present.models.find(m->first);
    auto& engines = m->second.engines;
    for (auto e = engines.begin(); e != engines.end();) {
      const bool stays = now != present.models.end() && now->second.find(e->first);
      if (!stays) forget(m->second, e->first, e->second);
      e = stays ? std::next(e) : engines.erase(e);
    }
    models_gone = models_gone || (now == present.models.end() && m->second.indexes);
    m = now == present.models.end() ? models_.erase(m) : std::next(m);
  }
  if (models_gone) publish();
  for (const auto& [name, model] : present.models) {
    auto& of = models_[name];
    for (const auto& e : model.endpoints) {
      auto& engine = of.engines[e.instance];
      const bool replaced = engine.epoch && e.engine_epoch && *engine.epoch != *e.engine_epoch;
      if (replaced || e.state == fb::EngineState::Down) forget(of, e.instance, engine);
      if (e.engine_epoch) engine.epoch = e.engine_epoch;
      for (const auto mode : {fb::KeyMode::Text, fb::KeyMode::Token}) {
        // Events never tell of text, so its keys live by their own time.
        const bool events_tell = mode == fb::KeyMode::Token && e.kv_health != fb::KvHealth::Absent;
        engine.ttl[position(mode)] = events_tell ? how_.speculative_ttl : how_.ttl;
        std::uint64_t bound = how_.max_blocks_per_instance;
        const auto block_size = e.block_size.value_or(0);
        const auto key_size = mode == fb::KeyMode::Token ? block_size : text_block_tokens;
        if (e.total_blocks && block_size != 0)
          bound = std::min(
              bound, std::min(*e.total_blocks, most_blocks) * e.engine_block_size.value_or(block_size) / key_size);
        engine.bound[position(mode)] = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, bound));
      }
    }
  }
}

/// Grows the table as far as bound and memory allow; how many keys it may hold.
std::uint32_t prediction_index::room_for(recent_keys& recent, std::uint32_t wanted, std::uint32_t bound) {
  wanted = std::min(wanted, bound);
  if (wanted > recent.capacity()) {
    auto next = std::max(recent_keys::least_capacity, std::bit_ceil(wanted));
    while (next > recent.capacity() && !budget_->take(recent_keys::footprint(next))) next /= 2;
    if (next > recent.capacity()) {
      const auto before = recent_keys::footprint(recent.capacity());
      recent.resize(next);
      budget_->give_back(before);
    }
  }
  return std::min(bound, recent.capacity());
}

prediction_index::recorded prediction_index::record(std::string_view model, fb::KeyMode mode, std::string_view instance,
                                                    std::span<const block_key> chain, clock_point now) {
  now = last_record_ = std::max(now, last_record_ + clock_point::duration(1));
  model_state* of = nullptr;
  auto* engine = how_.enabled && !chain.empty() ? find(model, instance, of) : nullptr;
  if (!engine) return {0, now};
  const auto m = position(mode);
  auto& recent = engine->recent[m];
  std::uint32_t had = 0;
  while (had < chain.size() && recent.contains(chain[had])) ++had;
  const auto bound = engine->bound[m];
  const auto fresh = static_cast<std::uint32_t>(std::min<std::size_t>(chain.size() - had, bound));
  const auto room = room_for(recent, recent.size() + fresh, bound);
  const auto kept = chain.first(std::min<std::size_t>(chain.size(), room));
  count_.shed += chain.size() - kept.size();
  if (kept.empty()) return {had, now};
  if (!of->indexes) {
    of->indexes = std::make_shared<store>(budget_);
    publish();
  }
  auto& index = of->indexes->by_mode[m];
  if (!index.add_instance(instance)) {
    count_.shed += kept.size();
    return {had, now};
  }
  gone_.clear();
  // From the end, so that the beginning, without which the rest is worth nothing, is used last and goes last.
  for (auto k = kept.rbegin(); k != kept.rend(); ++k) {
    while (recent.size() >= room && !recent.contains(*k)) gone_.push_back(recent.pop_oldest());
    count_.entries += recent.touch(*k, now) ? 0 : 1;
  }
  count_.entries -= gone_.size();
  count_.evicted += gone_.size();
  engine->last_used[m] = now;
  if (!gone_.empty()) index.remove(instance, gone_);
  count_.shed += index.add(instance, kept);
  return {had, now};
}

void prediction_index::withdraw(std::string_view model, fb::KeyMode mode, std::string_view instance,
                                std::span<const block_key> chain, recorded what) {
  model_state* of = nullptr;
  auto* engine = find(model, instance, of);
  if (!engine || !of->indexes || what.had >= chain.size()) return;
  gone_.clear();
  for (const auto k : chain.subspan(what.had))
    if (engine->recent[position(mode)].erase(k, what.at)) gone_.push_back(k);
  count_.entries -= gone_.size();
  of->indexes->by_mode[position(mode)].remove(instance, gone_);
}

void prediction_index::expire(clock_point now) {
  if (now < next_expiry_) return;
  next_expiry_ = now + expiry_interval;
  for (auto& [name, of] : models_) {
    if (!of.indexes) continue;
    for (std::size_t m : {0U, 1U}) {
      auto& index = of.indexes->by_mode[m];
      for (auto& [instance, engine] : of.engines) {
        auto& recent = engine.recent[m];
        if (recent.capacity() == 0) continue;
        gone_.clear();
        while (recent.size() != 0 && recent.oldest() + engine.ttl[m] <= now) gone_.push_back(recent.pop_oldest());
        count_.entries -= gone_.size();
        count_.expired += gone_.size();
        if (!gone_.empty()) index.remove(instance, gone_);
        if (recent.size() != 0 || now - engine.last_used[m] < idle_before_release) continue;
        index.remove_instance(instance);
        budget_->give_back(recent_keys::footprint(recent.capacity()));
        recent.resize(0);
      }
      index.maintain();
    }
  }
}

prediction_index::counters prediction_index::count() const {
  auto now = count_;
  now.bytes = budget_->used();
  return now;
}

std::span<const indexer::match> prediction_index::reader::lookup(std::string_view model, fb::KeyMode mode,
                                                                 std::span<const block_key> chain) {
  const auto* now = stores_.get();
  if (now != seen_) {
    std::erase_if(open_, [now](const auto& entry) {
      const auto it = now->find(entry.first);
      return it == now->end() || it->second != entry.second.held;
    });
    seen_ = now;
  }
  auto it = open_.find(model);
  if (it == open_.end()) {
    const auto known = now->find(model);
    if (known == now->end()) return {};
    open_store fresh{known->second, {}};
    for (std::size_t m : {0U, 1U})
      fresh.by_mode[m] = std::make_unique<indexer::kv_index::reader>(fresh.held->by_mode[m]);
    it = open_.emplace(model, std::move(fresh)).first;
  }
  return it->second.by_mode[position(mode)]->lookup(chain);
}

}  // namespace infernex::router
