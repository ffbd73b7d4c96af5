#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/simulator/tokenizer.hpp"

namespace infernex::simulator {

/// The engine's own name for a block: opaque, and different in every process, as vLLM's default is.
using engine_hash = std::uint64_t;

/// Consecutive blocks of one sequence can be reused from now on.
struct blocks_stored {
  /// Of the first block; none at the start of a sequence.
  std::optional<engine_hash> parent;
  std::vector<engine_hash> hashes;
  /// Of all blocks: hashes.size() * block_size.
  std::vector<token_id> tokens;
  /// The request's cache salt where the first block starts the sequence; else empty.
  std::string salt;
  friend bool operator==(const blocks_stored&, const blocks_stored&) = default;
};

/// One copy of the block is gone. As in vLLM, equal blocks computed twice are stored and removed twice.
struct block_removed {
  engine_hash hash = 0;
  friend bool operator==(const block_removed&, const block_removed&) = default;
};

struct all_blocks_cleared {
  friend bool operator==(const all_blocks_cleared&, const all_blocks_cleared&) = default;
};

using kv_event = std::variant<blocks_stored, block_removed, all_blocks_cleared>;

}  // namespace infernex::simulator
