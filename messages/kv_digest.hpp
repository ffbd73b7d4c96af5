#pragma once

#include <cstdint>

#include "messages/generated/origin_generated.h"

namespace infernex {

/// What one block on one tier adds to (and, gone, takes from) the digest of a set of blocks, which is the XOR of all
/// of them: on the device the key itself, elsewhere the key spread by the tier, so that moving a block shows.
inline std::uint64_t digest_of(std::uint64_t key, messages::KvTier tier) {
  if (tier == messages::KvTier::Device) return key;
  auto x = key + 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(tier);
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}

}  // namespace infernex
