#include "actors/indexer/kv_index.hpp"

#include <algorithm>

#include "actors/indexer/kv_index_state.hpp"
#include "messages/kv_digest.hpp"

namespace infernex::indexer {

namespace {
constexpr std::size_t prefetch_distance = 24;
/// Beside the names and bits in the directory: the map's node, and the free and swept lists.
constexpr std::uint64_t instance_bytes = 256;

/// Calls `use(key)` for each, its cell on the way into the cache before its turn.
template <class Tables, class Use>
void each_prefetched(const Tables& tables, std::span<const block_key> keys, Use use) {
  const auto ahead = [&](block_key k) {
    if (const auto& table = tables[cell_table::mix(k) >> (64 - cell_table::part_bits)]) table->prefetch_to_write(k);
  };
  for (std::size_t i = 0; i < std::min(prefetch_distance, keys.size()); ++i) ahead(keys[i]);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + prefetch_distance < keys.size()) ahead(keys[i + prefetch_distance]);
    use(keys[i]);
  }
}
}  // namespace

kv_index::kv_index(limits bounds, std::shared_ptr<byte_budget> shared)
    : impl_(std::make_unique<impl>(bounds, std::move(shared))) {}
kv_index::~kv_index() = default;

bool kv_index::add_instance(std::string_view instance) {
  auto& me = *impl_;
  if (me.find(instance)) return true;
  if (me.instances.size() >= me.bounds.max_instances) return false;
  const auto cost = instance_bytes + 2 * instance.size();
  if (!me.budget.take(cost, me.keep_free())) return false;
  byte_lease lease(&me.budget, cost);
  const auto at = me.take_slot();
  if (!at) return false;
  auto& made = me.instances[std::string(instance)];
  made.device = *at;
  made.lease = std::move(lease);
  me.set_open(*at, false);
  me.publish_directory();
  return true;
}

void kv_index::remove_instance(std::string_view instance) {
  const auto it = impl_->instances.find(instance);
  if (it == impl_->instances.end()) return;
  impl_->abandon(it->second);
  impl_->instances.erase(it);
  impl_->publish_directory();
}

void kv_index::clear(std::string_view instance) {
  auto& me = *impl_;
  auto* of = me.find(instance);
  if (!of) return;
  if (of->all_keys() == 0) return me.set_open(of->device, false);
  const auto next = me.take_slot();
  if (!next) {
    // Thousands of clears, and a lookup that keeps any slot from being used again: take the blocks out one by one.
    for (const auto on : {tier::Device, tier::Host, tier::Disk})
      if (const auto at = of->at(on)) me.scrub(*at);
    of->keys = {};
    of->digest = 0;
    return me.set_open(of->device, false);
  }
  me.abandon(*of);
  of->device = *next;
  me.set_open(*next, false);
  me.publish_directory();
}

void kv_index::set_closed(std::string_view instance, bool closed) {
  if (auto* of = impl_->find(instance)) impl_->set_open(of->device, !closed);
}

std::size_t kv_index::add(std::string_view instance, std::span<const block_key> keys, tier on) {
  auto& me = *impl_;
  auto* of = me.find(instance);
  if (!of || keys.empty()) return of ? 0 : keys.size();
  auto at = of->at(on);
  if (!at) {
    at = me.take_slot();
    if (!at) {
      me.refused += keys.size();
      me.last_refusal.for_slots = true;
      return keys.size();
    }
    of->lower[static_cast<std::size_t>(on) - 1] = at;
    me.publish_directory();
  }
  std::size_t refused = 0;
  auto& count = of->keys[static_cast<std::size_t>(on)];
  each_prefetched(me.owned_tables, keys, [&](block_key k) {
    bool added = false;
    if (!me.add_key(impl::part_of(k), k, *at, added)) {
      // What follows the refused block in its chain will have a hole before it.
      if (refused++ == 0 && on == tier::Device) me.set_open(*at, true);
    }
    if (added) {
      ++count;
      of->digest ^= infernex::digest_of(k, on);
    }
  });
  if (refused != 0) {
    me.refused += refused;
    me.last_refusal = {me.budget.used_of_all(), distinct_keys(), false};
  }
  me.sweep_step();
  return refused;
}

void kv_index::remove(std::string_view instance, std::span<const block_key> keys, tier on) {
  auto& me = *impl_;
  auto* of = me.find(instance);
  const auto at = of ? of->at(on) : std::nullopt;
  if (!at || keys.empty()) return;
  auto& count = of->keys[static_cast<std::size_t>(on)];
  each_prefetched(me.owned_tables, keys, [&](block_key k) {
    const auto& table = me.owned_tables[impl::part_of(k)];
    if (table && table->remove(k, *at) == cell_table::outcome::done) {
      --count;
      of->digest ^= infernex::digest_of(k, on);
    }
  });
  me.sweep_step();
}

bool kv_index::maintain() { return impl_->sweep_step(); }

std::size_t kv_index::instances() const { return impl_->instances.size(); }
std::uint64_t kv_index::refused() const { return impl_->refused; }
std::uint64_t kv_index::bytes() const { return impl_->budget.used(); }
std::uint64_t kv_index::max_bytes() const { return impl_->budget.max(); }

bool kv_index::has_room() const {
  const auto& last = impl_->last_refusal;
  if (last.for_slots) return !impl_->free_slots.empty() || impl_->slots_used < slot_limit;
  return impl_->budget.used_of_all() <= last.bytes - last.bytes / 10 || distinct_keys() <= last.keys - last.keys / 10;
}

std::uint64_t kv_index::keys_of(std::string_view instance) const {
  const auto* of = impl_->find(instance);
  return of ? of->all_keys() : 0;
}

std::uint64_t kv_index::keys_of(std::string_view instance, tier on) const {
  const auto* of = impl_->find(instance);
  return of ? of->keys[static_cast<std::size_t>(on)] : 0;
}

std::uint64_t kv_index::digest_of(std::string_view instance) const {
  const auto* of = impl_->find(instance);
  return of ? of->digest : 0;
}

std::uint64_t kv_index::distinct_keys() const {
  std::uint64_t sum = 0;
  for (const auto& table : impl_->owned_tables) sum += table ? table->live() : 0;
  return sum;
}

}  // namespace infernex::indexer
