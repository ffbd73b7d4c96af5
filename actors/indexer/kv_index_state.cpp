#include "actors/indexer/kv_index_state.hpp"

#include <algorithm>
#include <thread>

namespace infernex::indexer {

namespace {
constexpr std::uint32_t max_instances_limit = 3840;  // leaves slots for instances that are being swept
/// How often a full set of slots is swept, and the lookups under way are waited for, before giving up.
constexpr int sweep_attempts = 100'000;
constexpr std::uint32_t words_for(slot slots) { return (slots + 63) / 64; }
void set_bit(slot_bits& of, slot s) { of[s / 64] |= std::uint64_t{1} << (s % 64); }
}  // namespace

kv_index::impl::impl(limits wanted, std::shared_ptr<byte_budget> shared)
    : bounds(wanted), budget(wanted.max_bytes, std::move(shared)) {
  bounds.max_instances = std::min(bounds.max_instances, max_instances_limit);
  publish_directory();
}

void kv_index::impl::publish_directory() {
  auto next = std::make_shared<directory>();
  auto names = std::make_shared<directory::name_list>(slots_used);
  next->device.resize(words_for(slots_used));
  next->tiered.resize(words_for(slots_used));
  for (const auto& [name, of] : instances) {
    (*names)[of.device] = name;
    set_bit(next->device, of.device);
    for (const auto on : {tier::Host, tier::Disk}) {
      const auto at = of.at(on);
      if (!at) continue;
      next->lower.resize(words_for(slots_used));
      next->places.resize(slots_used);
      set_bit(next->lower, *at);
      set_bit(next->tiered, of.device);
      next->places[*at] = {of.device, on};
    }
  }
  const auto bytes = sizeof(directory) + names->size() * sizeof(std::string) +
                     next->places.size() * sizeof(directory::place) +
                     (next->device.size() + next->tiered.size() + next->lower.size()) * sizeof(std::uint64_t);
  next->names = std::move(names);
  // Small, room is kept for it (keep_free), and without it nothing works.
  budget.force(bytes);
  next->lease = byte_lease(&budget, bytes);
  current.store(next.get(), std::memory_order_seq_cst);
  if (auto old = std::exchange(owned_directory, std::move(next))) reclaim.retire(std::move(old));
}

void kv_index::impl::set_open(slot s, bool is_open) {
  auto& word = open[s / 64];
  const auto bit = std::uint64_t{1} << (s % 64);
  const auto now = word.load(std::memory_order_relaxed);
  if (((now & bit) != 0) == is_open) return;
  word.store(is_open ? now | bit : now & ~bit, std::memory_order_seq_cst);
  // Before the blocks that may leave holes are written, so that who sees one of them sees this.
  if (is_open) openings.fetch_add(1, std::memory_order_seq_cst);
}

/// The instance's traces count no more once the next directory is out.
void kv_index::impl::abandon(instance& of) {
  to_sweep.push_back(of.device);
  for (auto& at : of.lower) {
    if (at) to_sweep.push_back(*at);
    at.reset();
  }
  of.keys = {};
  of.digest = 0;
}

void kv_index::impl::scrub(slot s) {
  for (const auto& table : owned_tables) {
    if (!table) continue;
    std::vector<block_key> held;
    table->each_key_of([s](slot at) { return at == s; }, [&held](block_key k) { held.push_back(k); });
    for (const auto k : held) table->remove(k, s);
  }
}

std::optional<slot> kv_index::impl::take_slot() {
  if (free_slots.empty() && slots_used < slot_limit) return slots_used++;
  // Hundreds of instances cleared within a few writes: sweep at once, and wait for the lookups under way.
  for (int i = 0; free_slots.empty() && i < sweep_attempts && sweep_step(); ++i) std::this_thread::yield();
  if (free_slots.empty()) return std::nullopt;
  const auto s = free_slots.back();
  free_slots.pop_back();
  return s;
}

cell_table::slot_set kv_index::impl::dead_slots() const {
  cell_table::slot_set dead(words_for(slot_limit));
  for (const auto* slots : {&to_sweep, &sweeping})
    for (const auto s : *slots) set_bit(dead, s);
  return dead;
}

bool kv_index::impl::replace_table(std::size_t part, std::uint32_t capacity, std::uint64_t leave_free) {
  reclaim.collect();
  const auto bytes = cell_table::footprint(capacity);
  if (!budget.take(bytes, leave_free)) return false;
  auto next =
      std::make_shared<cell_table>(capacity, std::max(1U, words_for(slots_used)), budget, byte_lease(&budget, bytes));
  if (const auto& old = owned_tables[part])
    if (!old->copy_live(*next, dead_slots())) return false;
  tables[part].store(next.get(), std::memory_order_seq_cst);
  if (auto old = std::exchange(owned_tables[part], std::move(next))) reclaim.retire(std::move(old));
  largest_part = 0;
  for (const auto& table : owned_tables)
    if (table) largest_part = std::max(largest_part, table->bytes());
  return true;
}

bool kv_index::impl::add_key(std::size_t part, block_key k, slot s, bool& added) {
  using outcome = cell_table::outcome;
  auto* table = owned_tables[part].get();
  auto result = table ? table->add(k, s, keep_free()) : outcome::table_full;
  if (result == outcome::table_full || result == outcome::too_narrow) {
    const auto capacity = cell_table::capacity_for(table ? table->live() : 0);
    // A table full of keys that nobody holds any more is swept, not grown: that fits into what was kept free. What
    // grows must leave as much for its own successor.
    const bool sweeping_only = table && result == outcome::table_full && capacity <= table->capacity();
    const auto leave_free = keep_free() + cell_table::footprint(capacity);
    if (!replace_table(part, capacity, sweeping_only ? 0 : leave_free)) {
      // No room to grow: what evictions have left in the table makes some, where it is worth the copying.
      if (result != outcome::table_full || !table || !table->is_worth_sweeping()) return false;
      if (!replace_table(part, table->capacity(), 0)) return false;
    }
    result = owned_tables[part]->add(k, s, keep_free());
  }
  if (const auto bytes = owned_tables[part]->bytes(); bytes > largest_part) largest_part = bytes;
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
    // Without room (a lookup still holds the last table that was replaced) it is this part's turn again.
    if (replace_table(sweep_part, std::min(table->capacity(), wanted), 0)) ++sweep_part;
  }
  if (sweep_part == parts) {
    swept.insert(swept.end(), sweeping.begin(), sweeping.end());
    sweeping.clear();
    swept_epoch = reclaim.raise();
    finish_sweep();
  }
  return !to_sweep.empty() || !sweeping.empty() || !swept.empty();
}

}  // namespace infernex::indexer
