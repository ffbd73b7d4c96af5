#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/router/scheduler.hpp"

namespace infernex::router {

/// `no engine of model m is ready: 2 starting, 1 down`.
void append_reason_for_none(std::string& out, const model_endpoints& of, std::string_view adapter, const left_out& why);

struct choice_facts {
  std::string_view strategy;
  bool uses_cache;
  /// The picker goes by turns.
  bool in_turn;
  std::uint32_t blocks;
  /// Prompt tokens the chosen engine will compute, as far as known.
  std::uint64_t uncached_tokens = 0;
};

/// `kv-aware: engine-2 holds 14 of 20 blocks, kv 31 %, waiting 0, in flight 1`, or
/// `kv-aware: engine-2 holds 3, predicted 14 of 20 blocks, …`, or
/// `kv-aware by prediction (the model is not indexed): engine-2 predicted 14 of 20 blocks, …`, or
/// `round-robin: engine-2 is next of 5`, or `random: engine-2, chosen of 5`. Of a pair, `p1 holds 3 of 20 blocks,
/// prefills for d0 (cost 58, d0 alone 120)`; of a decode engine alone, `d0 holds 14 of 20 blocks, computes 96 prompt
/// tokens itself (cost 12, with p1 58)`: why it was or was not disaggregated. Precondition: somebody can take it.
void append_reason_for_choice(std::string& out, const choice_facts& facts, const decision& made,
                              const load_reading& load, std::string_view index_unknown_because);

}  // namespace infernex::router
