// link: infernex_engine_core
#include <cstdlib>

#include "actors/engine/kv_event_decoder.hpp"
#include "actors/engine/mirror.hpp"
#include "messages/kv_digest.hpp"

namespace {

using namespace infernex;
using namespace infernex::engine;

void follow(const kv_event_batch& batch, std::optional<std::uint32_t> canonical_size) {
  constexpr std::size_t most = 64;
  mirror set({"model", canonical_size, most, most});
  std::uint64_t keys = 0;
  std::uint64_t digest = 0;
  for (const auto& event : batch.events) {
    set.apply(event);
    const auto change = set.take_difference();
    if (change.cleared) keys = digest = 0;
    for (const auto& [tier, removed, added] : change.changes) {
      keys += added.size();
      keys -= removed.size();
      for (const auto key : removed) digest ^= digest_of(key, tier);
      for (const auto key : added) digest ^= digest_of(key, tier);
    }
    if (keys != set.keys() || digest != set.digest() || set.parked() > most) std::abort();
    if (!canonical_size && keys > kv_tiers * most) std::abort();
  }
}

}  // namespace

// Any bytes as a batch of KV events: never a crash, and what was decoded leaves a mirror whose figures agree, whatever
// the size of its blocks.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto batch = decode_kv_events({data, size});
  if (!batch) return 0;
  follow(*batch, std::nullopt);
  follow(*batch, 3);
  return 0;
}
