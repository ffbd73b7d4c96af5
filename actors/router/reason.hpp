#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "actors/router/decide.hpp"

namespace infernex::router {

/// Engines of a model that cannot take a request, counted by the first filter they failed.
struct left_out {
  std::array<std::uint32_t, 5> by_state{};  // by fb::EngineState; Ready stays 0
  std::uint32_t other_role = 0;
  std::uint32_t without_adapter = 0;
  std::uint32_t excluded = 0;
};

/// `no engine of model m is ready: 2 starting, 1 down`.
std::string reason_for_none(const model_endpoints& of, std::string_view adapter, const left_out& why);

struct choice_facts {
  strategy how;
  load_reading load;
  std::uint32_t blocks;
  bool index_used;
  std::size_t candidates;
};

/// `kv-aware: engine-2 holds 14 of 20 blocks, kv 31 %, waiting 0, in flight 1`, or
/// `kv-aware: engine-2 holds 3, predicted 14 of 20 blocks, …`, or
/// `kv-aware by prediction (the model is not indexed): engine-2 predicted 14 of 20 blocks, …`.
std::string reason_for_choice(const choice_facts& facts, const scored& chosen, std::string_view index_unknown_because);

}  // namespace infernex::router
