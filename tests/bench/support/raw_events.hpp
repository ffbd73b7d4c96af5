#pragma once

// The first part of a workload as the bytes an engine publishes (vLLM's map form), and what reads them: decoder,
// mirror, index.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/engine/block_key.hpp"
#include "actors/engine/kv_deltas.hpp"
#include "actors/engine/kv_event_decoder.hpp"
#include "actors/engine/mirror.hpp"
#include "actors/indexer/tracker.hpp"
#include "actors/simulator/kv_event_codec.hpp"
#include "messages/view.hpp"
#include "tests/bench/support/trace_workload.hpp"

namespace infernex::bench {

inline constexpr std::string_view model = "bench";

/// Tokens that stand for a block: any 128 that are the block's own.
inline void append_tokens(block_key k, std::vector<std::uint32_t>& to) {
  for (std::uint32_t t = 0; t < engine_block; ++t) to.push_back(static_cast<std::uint32_t>(mixed(k + t) % 150'000));
}

inline std::vector<engine::block_key> request_keys(std::span<const std::uint32_t> tokens) {
  return engine::chain_keys({model, "", "", engine_block}, tokens, tokens.size() / engine_block);
}

class raw_events {
 public:
  /// As many operations, from the first on, as fit into the memory set aside for it.
  explicit raw_events(const workload& work) {
    for (std::size_t i = 0; i < work.operations.size() && bytes_.size() + tokens_.size() * 4 < max_bytes; ++i) {
      const auto& o = work.operations[i];
      token_ends_.push_back(tokens_.size());
      for (const auto k : work.chain(o)) append_tokens(k, tokens_);
      std::vector<simulator::kv_event> events;
      for (const auto k : work.removed(o)) events.push_back(simulator::block_removed{hash_of(o.engine, k)});
      simulator::blocks_stored stored;
      if (o.cached != 0) stored.parent = hash_of(o.engine, work.chain(o)[o.cached - 1]);
      for (const auto k : work.stored(o)) {
        stored.hashes.push_back(hash_of(o.engine, k));
        append_tokens(k, stored.tokens);
      }
      if (!stored.hashes.empty()) events.push_back(std::move(stored));
      ends_.push_back(bytes_.size());
      bytes_ += simulator::encode_batch(events, {0, 0, engine_block, simulator::event_encoding::map});
      block_operations += o.asked + work.stored(o).size() + o.removed_count;
      ++operations;
    }
    ends_.push_back(bytes_.size());
    token_ends_.push_back(tokens_.size());
  }

  std::span<const std::uint8_t> payload_of(std::size_t i) const {
    return {reinterpret_cast<const std::uint8_t*>(bytes_.data()) + ends_[i], ends_[i + 1] - ends_[i]};
  }
  std::span<const std::uint32_t> tokens_of(std::size_t i) const {
    return {tokens_.data() + token_ends_[i], token_ends_[i + 1] - token_ends_[i]};
  }

  std::size_t operations = 0;
  std::uint64_t block_operations = 0;

 private:
  static constexpr std::size_t max_bytes = 1ULL << 30;
  static simulator::engine_hash hash_of(std::uint32_t engine, block_key k) { return mixed(k ^ mixed(engine)); }

  std::string bytes_;
  std::vector<std::size_t> ends_;
  std::vector<std::uint32_t> tokens_;
  std::vector<std::size_t> token_ends_;
};

/// What lies between an engine's bytes and the index but the sockets: decoder, mirror, KvDelta messages encoded and
/// verified, and the indexer's tracker, which checks each against the mirror's digest.
class raw_pipeline {
 public:
  raw_pipeline(std::uint32_t engines, indexer::index_set::limits bounds)
      : indexes_(std::make_shared<indexer::index_set>(bounds)), tracker_({}, indexes_) {
    for (std::uint32_t e = 0; e < engines; ++e) agents_.push_back(std::make_unique<agent>());
  }

  void apply(std::uint32_t engine, const std::string& name, std::span<const std::uint8_t> payload) {
    const auto batch = engine::decode_kv_events(payload);
    if (!batch) return;
    auto& from = *agents_[engine];
    for (const auto& event : batch->events) from.mirror.apply(event);
    for (auto& delta : engine::deltas_of(from.mirror.take_difference(), from.published, 60'000)) {
      delta.origin = std::make_unique<fb::OriginT>();
      delta.origin->epoch = 1;
      delta.origin->sequence = ++from.sequence;
      delta.model = model;
      delta.instance = name;
      const auto bytes = encode(delta);
      const auto message = view<fb::KvDelta>::verify(chunk::copy_of(bytes_of(bytes)));
      if (message) tracker_.on_delta(**message, {});
    }
  }
  indexer::index_set& indexes() { return *indexes_; }
  /// Of the mirrors, and of the index.
  std::uint64_t mirror_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& each : agents_) sum += each->mirror.bytes();
    return sum;
  }
  std::uint64_t index_bytes() const { return indexes_->bytes(); }
  /// Blocks held, as the index and as the mirrors count them: equal, or the pipeline has lost something.
  std::pair<std::uint64_t, std::uint64_t> memberships() const {
    std::pair<std::uint64_t, std::uint64_t> sums;
    for (const auto& source : tracker_.status({})) sums.first += source.keys;
    for (const auto& each : agents_) sums.second += each->mirror.keys();
    return sums;
  }

 private:
  struct agent {
    engine::mirror mirror{engine::mirror_settings{std::string(model)}};
    engine::published_set published;
    std::uint64_t sequence = 0;
  };
  std::vector<std::unique_ptr<agent>> agents_;
  std::shared_ptr<indexer::index_set> indexes_;
  indexer::tracker tracker_;
};

}  // namespace infernex::bench
