// link: infernex_engine_core
#include "actors/engine/mirror.hpp"

#include <array>
#include <cstdlib>
#include <map>

#include "tests/fuzz/byte_reader.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;

constexpr std::size_t max_blocks = 64;

/// Few hashes, parents and tokens, so that events meet.
class events {
 public:
  explicit events(infernex::test::byte_reader& from) : from_(from) {}

  kv_event next() {
    const auto kind = from_.below(16);
    if (kind == 0) {
      stored_.clear();
      return all_cleared{};
    }
    return kind < 10 ? stored() : removed();
  }

  /// As many removals as there were stores.
  std::vector<kv_event> last_removals() const {
    std::vector<kv_event> removals;
    for (const auto& [block, count] : stored_)
      for (std::uint32_t i = 0; i < count; ++i)
        removals.emplace_back(removed_blocks{{block.first}, block.second, std::nullopt});
    return removals;
  }

 private:
  fb::KvTier tier() { return static_cast<fb::KvTier>(from_.below(kv_tiers)); }

  kv_event stored() {
    stored_blocks blocks;
    const auto flags = from_.byte();
    blocks.tier = tier();
    blocks.block_size = (flags & 1) != 0 ? 1 + from_.below(5) : 2;
    const auto count = from_.below(5);
    for (std::uint32_t i = 0; i < count; ++i) {
      blocks.hashes.push_back(from_.below(32));
      ++stored_[{blocks.hashes.back(), blocks.tier}];
    }
    if ((flags & 2) != 0) blocks.parent = from_.below(32);
    const std::size_t tokens = (flags & 4) != 0 ? from_.below(32) : std::size_t{blocks.block_size} * count;
    for (std::size_t i = 0; i < tokens; ++i) blocks.tokens.push_back(from_.below(3));
    if ((flags & 8) != 0) blocks.adapter = "a";
    if ((flags & 16) != 0) blocks.salt = "s";
    if ((flags & 32) != 0) blocks.extras.assign(count, from_.below(2) == 0 ? "" : "image");
    if ((flags & 64) != 0) {
      blocks.group = from_.below(3);
      if (from_.below(4) == 0) blocks.attention_kind = "mamba";
    }
    return blocks;
  }

  kv_event removed() {
    removed_blocks blocks;
    blocks.tier = tier();
    const auto count = from_.below(4);
    for (std::uint32_t i = 0; i < count; ++i) blocks.hashes.push_back(from_.below(32));
    if (const auto group = from_.below(4); group > 0) blocks.group = group - 1;
    return blocks;
  }

  infernex::test::byte_reader& from_;
  std::map<std::pair<std::uint64_t, fb::KvTier>, std::uint32_t> stored_;
};

void check(const mirror& set) {
  if (set.parked() > max_blocks) std::abort();
  if (set.keys() == 0 && set.digest() != 0) std::abort();
  // Without blocks on the device there is no hole between them. (What closed() says otherwise, the property tests check
  // against an engine that knows its chains.)
  std::size_t keys = 0;
  bool any_on_device = false;
  for (const auto& [tier, held] : set.all_keys()) {
    keys += held.size();
    any_on_device = any_on_device || (tier == fb::KvTier::Device && !held.empty());
  }
  if (keys != set.keys()) std::abort();
  if (!any_on_device && !set.closed()) std::abort();
}

}  // namespace

// Any sequence of events: never a crash, no bound passed, and once everything stored is removed again, nothing
// is left.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  infernex::test::byte_reader bytes(data, size);
  const auto canonical = bytes.below(6);
  mirror set({"model", canonical == 0 ? std::nullopt : std::optional(canonical), max_blocks, max_blocks});
  events source(bytes);
  while (!bytes.done()) {
    const auto event = source.next();
    set.apply(event);
    check(set);
    if (std::holds_alternative<all_cleared>(event) && (set.keys() != 0 || !set.complete())) std::abort();
    if (bytes.below(8) == 0 && set.take_difference().closed != set.closed()) std::abort();
  }
  for (const auto& removal : source.last_removals()) set.apply(removal);
  check(set);
  if (set.keys() != 0) std::abort();
  return 0;
}
