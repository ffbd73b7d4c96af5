#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "messages/registry.hpp"

namespace infernex::simulator {

/// What became of the requests that were seen.
struct record_counts {
  std::uint64_t recorded = 0;
  // Not recorded, because:
  /// its end was reported, but no query of it was seen: it was routed inside its gateway, or before the recording;
  std::uint64_t no_query = 0;
  /// it did not complete (its client left, its engine failed, it was refused);
  std::uint64_t not_completed = 0;
  /// nobody reported how many tokens it had;
  std::uint64_t no_lengths = 0;
  /// it is of another model, or its keys of another block size, than the trace;
  std::uint64_t other_model = 0;
  std::uint64_t other_block_size = 0;
  /// its end was not reported in time, or too many were under way.
  std::uint64_t expired = 0;
  std::uint64_t over_bound = 0;

  std::uint64_t dropped() const {
    return not_completed + no_lengths + other_model + other_block_size + expired + over_bound;
  }
};

/// Makes a trace of what is on the bus: route queries say when a request came and the keys of its blocks, life messages
/// how long prompt and answer were and when the first token came. Knows no text.
class replay_recorder {
 public:
  struct limits {
    std::size_t max_pending = 65'536;
    /// Of all pending requests together, 8 bytes each.
    std::size_t max_pending_keys = 16'000'000;
    std::chrono::milliseconds expiry = std::chrono::minutes(15);
  };
  using clock_point = std::chrono::steady_clock::time_point;

  /// `model`: record this one only; empty: the first that is asked for.
  explicit replay_recorder(std::string model, limits bounds);
  explicit replay_recorder(std::string model) : replay_recorder(std::move(model), limits{}) {}

  void query(const fb::RouteQuery& message, clock_point now);
  /// Lines for the trace (docs/replay.md), its header first.
  std::string life(const fb::RequestLife& message, clock_point now);

  const record_counts& counts() const { return counts_; }
  /// Requests whose end has not been reported.
  std::size_t pending() const { return pending_.size(); }
  /// Empty before the first request.
  const std::string& model() const { return model_; }

 private:
  struct request {
    clock_point arrived;
    std::optional<std::uint32_t> prompt_tokens;
    std::vector<std::uint64_t> keys;
    std::list<std::string>::iterator place;
  };

  void item(const fb::RouteItem& one, clock_point now);
  void expire(clock_point now);
  /// Precondition: it is pending.
  request take(std::unordered_map<std::string, request>::iterator one);
  std::string line(const request& asked, const fb::Finished& ended);

  std::string model_;
  limits bounds_;
  record_counts counts_;
  std::unordered_map<std::string, request> pending_;
  std::size_t pending_keys_ = 0;
  /// The pending ones in the order of their arrival.
  std::list<std::string> order_;
  std::uint32_t block_size_ = 0;
  /// Of the first request asked for.
  std::optional<clock_point> first_;
  bool header_written_ = false;
};

}  // namespace infernex::simulator
