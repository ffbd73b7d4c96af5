#pragma once

// What the benchmarks of replay share: the trace and the engines.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "actors/simulator/replay_policy.hpp"
#include "actors/simulator/replay_trace.hpp"
#include "actors/simulator/replay_trace_file.hpp"

namespace infernex::bench {

/// Conversations that grow turn by turn, of lengths like the real trace's: stands in where no trace is at hand.
inline simulator::trace made_up_replay_trace() {
  constexpr std::uint32_t block = simulator::mooncake_block_tokens;
  std::mt19937_64 random(42);
  std::vector<std::vector<std::uint64_t>> conversations;
  std::uint64_t next_id = 1;
  simulator::trace made(block);
  for (int i = 0; i < 12'000; ++i) {
    auto c = conversations.size();
    if (c != 0 && random() % 2 != 0) c = c < 512 ? random() % c : c - 1 - random() % 512;
    if (c == conversations.size()) conversations.push_back({0});
    auto& ids = conversations[c];
    const auto grown = 1 + random() % 8 * (random() % 8);
    for (std::uint64_t g = 0; g < grown && ids.size() < 240; ++g) ids.push_back(next_id++);
    made.add({.arrival_ms = i * 294.0,
              .prompt_tokens = static_cast<std::uint32_t>(ids.size()) * block,
              .output_tokens = 343,
              .blocks = ids});
  }
  made.arrange();
  return made;
}

/// Arrivals of the same moment spread evenly over the time to the next. Mooncake's stamps are multiples of 3 s: as they
/// are, ten requests come at once, and then none for seconds.
inline simulator::trace spread(const simulator::trace& stamped) {
  simulator::trace made(stamped.block_tokens());
  double next = stamped.span_ms();
  for (std::size_t end = stamped.size(); end > 0;) {
    const auto at = stamped[end - 1].arrival_ms;
    auto first = end;
    while (first > 0 && stamped[first - 1].arrival_ms == at) --first;
    for (auto i = first; i < end; ++i) {
      auto request = stamped[i];
      request.arrival_ms += (next - at) * static_cast<double>(i - first) / static_cast<double>(end - first);
      made.add(request);
    }
    next = at;
    end = first;
  }
  made.arrange();
  return made;
}

/// The file's, which ends the program if it cannot be read; empty name: a made-up one. ARRIVALS=spread spreads it.
inline simulator::trace replay_trace(const std::string& file) {
  if (file.empty()) {
    std::cout << "no TRACE=FILE given: a made-up trace of the same form\n";
    return made_up_replay_trace();
  }
  std::ifstream in(file);
  auto loaded = simulator::read_trace(in, file);
  if (!loaded) {
    std::cerr << file << ": " << loaded.failure().detail << '\n';
    std::exit(1);
  }
  const char* arrivals = std::getenv("ARRIVALS");
  return arrivals && std::string_view(arrivals) == "spread" ? spread(loaded->requests) : std::move(loaded->requests);
}

/// An engine as one 80 GB accelerator with an 8B model has it: 64 GB of KV at 128 KiB a token are 524,288 tokens.
/// Batch limits and step costs are vLLM's and the simulator's defaults; blocks are the trace's, so that names need no
/// cutting; the longest prompts of the trace (126,195 tokens) must fit the context.
inline simulator::replay_engine_settings replay_engine_of(std::uint32_t block_tokens) {
  simulator::replay_engine_settings one;
  one.engine.block_size = block_tokens;
  one.engine.total_blocks = 524'288 / block_tokens;
  one.engine.max_model_len = 131'072;
  one.engine.max_num_seqs = 256;
  one.engine.max_num_batched_tokens = 8'192;
  return one;
}

}  // namespace infernex::bench
