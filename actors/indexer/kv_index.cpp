#include "actors/indexer/kv_index.hpp"

#include <algorithm>
#include <thread>

#include "actors/indexer/kv_index_state.hpp"

namespace infernex::indexer {

namespace {
constexpr std::uint32_t max_instances_limit = 3840;  // leaves slots for instances that are being swept
constexpr std::size_t prefetch_distance = 8;
constexpr std::uint32_t words_for(slot slots) { return (slots + 63) / 64; }
}  // namespace

kv_index::impl::impl(limits wanted, std::shared_ptr<byte_budget> shared)
    : bounds(wanted), budget(wanted.max_bytes, std::move(shared)) {
  bounds.max_instances = std::min(bounds.max_instances, max_instances_limit);
  publish_directory();
}

void kv_index::impl::publish_directory() {
  auto names = std::make_shared<directory::name_list>(slots_used);
  std::vector<std::uint64_t> alive(words_for(slots_used));
  std::uint64_t bytes = sizeof(directory) + alive.size() * sizeof(alive[0]) + names->size() * sizeof(std::string);
  for (const auto& [name, of] : instances) {
    (*names)[of.at] = name;
    alive[of.at / 64] |= std::uint64_t{1} << (of.at % 64);
    bytes += 2 * name.size() + sizeof(instance) + sizeof(std::string) + 4 * sizeof(void*);  // with the map's node
  }
  auto next = std::make_shared<const directory>(std::move(names), std::move(alive));
  current.store(next.get(), std::memory_order_seq_cst);
  auto old = std::exchange(owned_directory, std::move(next));
  // Small, and without it nothing works: instances are bounded by number, not by bytes.
  budget.force(bytes);
  directory_lease = byte_lease(&budget, bytes);
  if (old) reclaim.retire(std::move(old));
}

/// The instance's traces count no more once the next directory is out.
void kv_index::impl::abandon(instance& of) {
  to_sweep.push_back(of.at);
  of.keys = 0;
  of.digest = 0;
}

slot kv_index::impl::take_slot() {
  if (free_slots.empty() && slots_used == slot_limit) {
    // Hundreds of instances cleared within a few writes: sweep at once, and wait for the lookups under way.
    while (sweep_step()) std::this_thread::yield();
  }
  if (free_slots.empty()) return slots_used++;
  const auto s = free_slots.back();
  free_slots.pop_back();
  return s;
}

cell_table::slot_set kv_index::impl::dead_slots() const {
  cell_table::slot_set dead(words_for(slot_limit));
  for (const auto* slots : {&to_sweep, &sweeping})
    for (const auto s : *slots) dead[s / 64] |= std::uint64_t{1} << (s % 64);
  return dead;
}

bool kv_index::impl::replace_table(std::size_t part, std::uint32_t capacity, bool beyond_budget) {
  const auto bytes = cell_table::footprint(capacity);
  if (!budget.take(bytes)) {
    reclaim.collect();
    if (!beyond_budget && !budget.take(bytes)) return false;
    if (beyond_budget) budget.force(bytes);
  }
  auto next =
      std::make_shared<cell_table>(capacity, std::max(1U, words_for(slots_used)), budget, byte_lease(&budget, bytes));
  if (const auto& old = owned_tables[part])
    if (!old->copy_live(*next, dead_slots(), beyond_budget)) return false;
  tables[part].store(next.get(), std::memory_order_seq_cst);
  if (auto old = std::exchange(owned_tables[part], std::move(next))) reclaim.retire(std::move(old));
  return true;
}

bool kv_index::impl::add_key(std::size_t part, block_key k, slot s, bool& added) {
  using outcome = cell_table::outcome;
  auto* table = owned_tables[part].get();
  auto result = table ? table->add(k, s) : outcome::table_full;
  if (result == outcome::table_full || result == outcome::too_narrow) {
    const auto capacity = cell_table::capacity_for(table ? table->live() : 0);
    // A table full of keys that nobody holds any more is swept, not grown.
    const bool sweeping_only = table && result == outcome::table_full && capacity <= table->capacity();
    if (!replace_table(part, capacity, sweeping_only)) return false;
    result = owned_tables[part]->add(k, s);
  }
  added = result == outcome::done;
  return result == outcome::done || result == outcome::nothing_to_do;
}

void kv_index::impl::finish_sweep() {
  if (swept.empty() || !reclaim.passed(swept_epoch)) return;
  free_slots.insert(free_slots.end(), swept.begin(), swept.end());
  swept.clear();
}

/// A table that is replaced leaves the dead slots behind, so sweeping is replacing every table in turn.
bool kv_index::impl::sweep_step() {
  reclaim.collect();
  finish_sweep();
  if (sweeping.empty()) {
    if (to_sweep.empty()) return !swept.empty();
    sweeping.swap(to_sweep);
    sweep_part = 0;
  }
  while (sweep_part < parts && !owned_tables[sweep_part]) ++sweep_part;
  if (sweep_part < parts) {
    const auto& table = owned_tables[sweep_part];
    const auto wanted = cell_table::capacity_for(table->live_without(dead_slots()));
    replace_table(sweep_part, std::min(table->capacity(), wanted), true);
    ++sweep_part;
  }
  if (sweep_part == parts) {
    swept.insert(swept.end(), sweeping.begin(), sweeping.end());
    sweeping.clear();
    swept_epoch = reclaim.raise();
    finish_sweep();
  }
  return !to_sweep.empty() || !sweeping.empty() || !swept.empty();
}

kv_index::kv_index(limits bounds, std::shared_ptr<byte_budget> shared)
    : impl_(std::make_unique<impl>(bounds, std::move(shared))) {}
kv_index::~kv_index() = default;

bool kv_index::add_instance(std::string_view instance) {
  if (impl_->find(instance)) return true;
  if (impl_->instances.size() >= impl_->bounds.max_instances) return false;
  impl_->instances.emplace(instance, impl::instance{impl_->take_slot()});
  impl_->publish_directory();
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
  auto* of = impl_->find(instance);
  if (!of || of->keys == 0) return;
  impl_->abandon(*of);
  of->at = impl_->take_slot();
  impl_->publish_directory();
}

std::size_t kv_index::add(std::string_view instance, std::span<const block_key> keys) {
  auto* of = impl_->find(instance);
  if (!of) return keys.size();
  std::size_t refused = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + prefetch_distance < keys.size()) {
      const auto ahead = keys[i + prefetch_distance];
      if (const auto& table = impl_->owned_tables[impl::part_of(ahead)]) table->prefetch(ahead);
    }
    bool added = false;
    if (!impl_->add_key(impl::part_of(keys[i]), keys[i], of->at, added)) ++refused;
    if (added) {
      ++of->keys;
      of->digest ^= keys[i];
    }
  }
  impl_->refused += refused;
  impl_->sweep_step();
  return refused;
}

void kv_index::remove(std::string_view instance, std::span<const block_key> keys) {
  auto* of = impl_->find(instance);
  if (!of) return;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + prefetch_distance < keys.size()) {
      const auto ahead = keys[i + prefetch_distance];
      if (const auto& table = impl_->owned_tables[impl::part_of(ahead)]) table->prefetch(ahead);
    }
    const auto& table = impl_->owned_tables[impl::part_of(keys[i])];
    if (table && table->remove(keys[i], of->at) == cell_table::outcome::done) {
      --of->keys;
      of->digest ^= keys[i];
    }
  }
  impl_->sweep_step();
}

bool kv_index::maintain() { return impl_->sweep_step(); }

std::size_t kv_index::instances() const { return impl_->instances.size(); }
std::uint64_t kv_index::refused() const { return impl_->refused; }
std::uint64_t kv_index::bytes() const { return impl_->budget.used(); }

std::uint64_t kv_index::keys_of(std::string_view instance) const {
  const auto* of = impl_->find(instance);
  return of ? of->keys : 0;
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
