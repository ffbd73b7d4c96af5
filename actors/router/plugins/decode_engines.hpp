#pragma once

// What is asked of engines that answer: their KV memory, and whether they can compute a prompt.

#include <optional>

#include "actors/router/topology.hpp"

namespace infernex::router::plugins {

/// KV blocks of the engine, in blocks of `block_size` tokens, which is the request's; nothing if it has not said.
inline std::optional<double> kv_capacity(const endpoint& engine, double block_size) {
  const double engine_block = engine.engine_block_size.value_or(engine.block_size.value_or(0));
  const double blocks =
      block_size == 0 ? 0 : static_cast<double>(engine.total_blocks.value_or(0)) * engine_block / block_size;
  return blocks > 0 ? std::optional(blocks) : std::nullopt;
}

/// SGLang's decode engines wait for a prefill engine's KV whatever comes; those of vLLM compute what nobody sends them.
inline bool computes_prompts(const endpoint& engine) {
  return engine.role != fb::EngineRole::Decode || !engine.kv_transfer ||
         engine.kv_transfer->protocol != fb::KvProtocol::Sglang;
}

}  // namespace infernex::router::plugins
