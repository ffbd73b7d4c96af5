#include <algorithm>
#include <bit>

#include "actors/indexer/kv_index_reader.hpp"

namespace infernex::indexer {

namespace {
constexpr std::size_t prefetch_distance = 8;
}

/// Block by block with a set of instances a tier: those that hold every block so far on the device; there or in host
/// memory; anywhere. A block may come from another tier than the one before it.
void kv_index::reader::impl::walk_tiers(const directory& now) {
  const auto words = now.device.size();
  constexpr auto device = static_cast<std::size_t>(tier::Device);
  constexpr auto host = static_cast<std::size_t>(tier::Host);
  constexpr auto disk = static_cast<std::size_t>(tier::Disk);
  for (auto& set : reach) set = now.device;
  ends.assign(now.names->size(), {});

  const auto put = [&](slot s) {
    if (has(now.device, s)) {
      holds[device][s / 64] |= std::uint64_t{1} << (s % 64);
    } else if (has(now.lower, s)) {
      const auto [owner, on] = now.places[s];
      holds[static_cast<std::size_t>(on)][owner / 64] |= std::uint64_t{1} << (owner % 64);
    }
  };
  const auto end_at = [&](std::size_t which, std::uint64_t gone, std::size_t word, std::size_t blocks) {
    for (; gone != 0; gone &= gone - 1)
      ends[word * 64 + static_cast<unsigned>(std::countr_zero(gone))][which] = static_cast<std::uint32_t>(blocks);
  };
  std::size_t i = 0;
  for (bool anyone = true; i < chain.size() && anyone; ++i) {
    if (i + prefetch_distance < chain.size()) prefetch(i + prefetch_distance);
    for (auto& set : holds) set.assign(words, 0);
    const auto at = cell(i);
    if (holders::is_bitset(at.held)) {
      holders::each_bit(holders::bitset_of(at.held), at.width, put);
    } else {
      for (unsigned n = 0; n < holders::inline_count(at.held); ++n) put(holders::inline_at(at.held, n));
    }
    anyone = false;
    for (std::size_t w = 0; w < words; ++w) {
      holds[host][w] |= holds[device][w];
      holds[disk][w] |= holds[host][w];
      for (std::size_t t = 0; t < tiers; ++t) {
        if (const auto gone = reach[t][w] & ~holds[t][w]) {
          end_at(t, gone, w, i);
          reach[t][w] &= holds[t][w];
        }
      }
      anyone = anyone || reach[disk][w] != 0;
    }
  }
  for (std::size_t t = 0; t < tiers; ++t)
    for (std::size_t w = 0; w < words; ++w) end_at(t, reach[t][w], w, i);
  for (std::size_t s = 0; s < ends.size(); ++s)
    if (const auto& e = ends[s]; e[disk] != 0) found.push_back({(*names)[s], e[disk], e[device], e[host]});
}

void kv_index::reader::impl::each_key(std::string_view instance, std::uint32_t part,
                                      const std::function<void(block_key)>& use) {
  static_assert(key_parts == kv_index::impl::parts);
  const reclaimer::reading guard(index.reclaim, *mark);
  const auto& now = *index.current.load(std::memory_order_seq_cst);
  const auto* table = part < key_parts ? index.tables[part].load(std::memory_order_seq_cst) : nullptr;
  if (!table) return;
  slot_bits own(now.device.size());  // the instance's slots of all tiers
  for (slot s = 0; s < now.names->size(); ++s) {
    if ((*now.names)[s] != instance || !has(now.device, s)) continue;
    own[s / 64] |= std::uint64_t{1} << (s % 64);
    for (slot l = 0; l < now.places.size(); ++l)
      if (has(now.lower, l) && now.places[l].device == s) own[l / 64] |= std::uint64_t{1} << (l % 64);
  }
  table->each_key_of([&own](slot s) { return has(own, s); }, use);
}

}  // namespace infernex::indexer
