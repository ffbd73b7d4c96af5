// link: infernex_engine_core
#include <cstdlib>

#include "actors/engine/kv_event_decoder.hpp"
#include "actors/engine/mirror.hpp"

// Any bytes as a batch of KV events: never a crash, and what was decoded leaves a mirror whose figures agree.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace infernex::engine;
  const auto batch = decode_kv_events({data, size});
  if (!batch) return 0;
  mirror set({"model", std::nullopt, 64, 64});
  std::uint64_t keys = 0;
  std::uint64_t digest = 0;
  for (const auto& event : batch->events) {
    set.apply(event);
    const auto change = set.take_difference();
    if (change.cleared) keys = digest = 0;
    keys += change.added.size();
    keys -= change.removed.size();
    for (const auto key : change.removed) digest ^= key;
    for (const auto key : change.added) digest ^= key;
    if (keys != set.keys() || digest != set.digest() || keys > 64 || set.parked() > 64) std::abort();
  }
  return 0;
}
