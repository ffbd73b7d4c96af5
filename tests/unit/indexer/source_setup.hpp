#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "actors/indexer/source.hpp"
#include "tests/unit/indexer/agent_model.hpp"

namespace infernex::indexer {

using key_set = std::set<block_key>;

/// A source with its index, and an agent that speaks to it without loss.
struct source_setup {
  kv_index index;
  sync_settings settings;
  sync_counters counters;
  time_point now{std::chrono::hours(1)};
  source of;
  agent_model agent;

  explicit source_setup(kv_index::limits bounds = {}, std::shared_ptr<byte_budget> shared = nullptr)
      : index(bounds, std::move(shared)), of((index.add_instance("e"), index), "e", settings, counters, now) {}

  key_set held() {
    kv_index::reader reader(index);
    key_set all;
    for (block_key k = 1; k < 5'000; ++k)
      if (!reader.lookup({&k, 1}).empty()) all.insert(k);
    return all;
  }
  void announce() { of.on_announce(agent.announce(), now); }
  void tell(const owned_delta& d) { of.on_delta(d.get(), now); }
  void pass(std::chrono::milliseconds time) {
    now += time;
    of.on_tick(now);
  }
  bool asked() { return of.take_request(now); }
  void answer(std::size_t keys_a_chunk = 3) {
    for (const auto& chunk : agent.snapshot(keys_a_chunk)) of.on_chunk(chunk.get(), now);
  }
};

}  // namespace infernex::indexer
