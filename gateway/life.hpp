#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/router/speed_book.hpp"
#include "messages/registry.hpp"

namespace infernex::gateway {

using clock_point = std::chrono::steady_clock::time_point;

/// What a request's step changes of an engine's totals: all positive when it is placed, all negative when it
/// leaves; the prompt tokens go at the first token.
struct life_change {
  std::string model;
  std::string instance;
  std::int32_t requests = 0;
  std::int64_t prefill_tokens = 0;
  std::int64_t blocks = 0;
  /// Set when the request is placed.
  std::string started;
};

struct life_finish {
  std::string model;
  fb::FinishedT record;
  /// Who computed the prompt: of a pair, the engine that prefills.
  std::string computed_at = {};
  /// What it met at its engine when it was placed there by the attempt that answered.
  std::optional<router::speed_conditions> met;
  /// Of a pair, at its prefill engine: what the first token took is learned of that one.
  std::optional<router::speed_conditions> met_at_prefill;
  /// What was expected from cache was a prediction, not the index's word.
  bool by_prediction = false;
};

/// A prompt that went to an engine by a decision taken here: predicts what the engine will cache.
struct routed_prompt {
  std::string request_id;
  std::string model;
  std::string instance;
  fb::KeyMode mode = fb::KeyMode::Text;
  std::vector<std::uint64_t> keys;
};

/// What happened to requests on one I/O thread since its last report, in order.
struct life_events {
  std::vector<life_change> changes;
  std::vector<life_finish> finished;
  std::vector<routed_prompt> routed;
  bool empty() const { return changes.empty() && finished.empty() && routed.empty(); }
};

/// One gateway's absolute totals per engine, and the messages that report them.
class life {
 public:
  struct limits {
    std::size_t max_models = 1024;
    std::size_t max_instances = 4096;
    /// Started ids and finished records kept a model between two messages; more are dropped and counted.
    std::size_t max_records = 2048;
    /// How long an engine without requests is still listed, so that a lost message does no harm.
    std::chrono::milliseconds list_idle_for{10'000};
  };

  /// `source` and `epoch` become the messages' origin.
  life(std::string source, std::uint64_t epoch, limits bounds);
  life(std::string source, std::uint64_t epoch) : life(std::move(source), epoch, limits{}) {}

  void apply(const life_events& events, clock_point now);
  /// Nothing is in flight any more: for the gateway's last messages.
  void end_all(clock_point now);
  /// The messages due: of the models that changed since their last one, or of all models.
  std::vector<fb::RequestLifeT> take(bool all, clock_point now);
  /// A message of take() that could not be sent: what appears in messages only once is kept for the next one.
  void put_back(fb::RequestLifeT&& unsent);
  /// Leaves totals only in a message that is too large, and counts the records as dropped.
  void drop_records(fb::RequestLifeT& message);
  bool changed() const;

  const std::string& source() const { return source_; }
  std::uint64_t epoch() const { return epoch_; }
  /// Records and changes dropped for a bound.
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct totals {
    std::int64_t requests = 0;
    std::int64_t prefill_tokens = 0;
    std::int64_t blocks = 0;
    clock_point idle_since;
  };
  struct model_life {
    std::map<std::string, totals> engines;
    std::vector<std::string> started;
    std::vector<fb::FinishedT> finished;
    std::uint64_t sequence = 0;
    bool changed = false;
  };
  model_life* find(const std::string& model);

  std::string source_;
  std::uint64_t epoch_;
  limits bounds_;
  std::map<std::string, model_life> models_;
  std::uint64_t dropped_ = 0;
};

}  // namespace infernex::gateway
