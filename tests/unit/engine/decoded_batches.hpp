#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "actors/engine/kv_event_decoder.hpp"
#include "tests/unit/engine/kv_batches.hpp"

namespace infernex::test {

/// The hash in every golden payload.
constexpr std::uint64_t golden_hash = 12687895063098490012ULL;

/// A batch that must be readable, of the time that batch_of() writes.
inline engine::kv_event_batch decoded(const std::vector<std::uint8_t>& payload) {
  auto batch = engine::decode_kv_events(payload);
  REQUIRE(batch.ok());
  CHECK(batch->published_at == 1757500000.25);
  return *std::move(batch);
}

}  // namespace infernex::test
