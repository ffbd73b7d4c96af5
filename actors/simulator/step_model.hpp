#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/simulator/generator.hpp"
#include "actors/simulator/prefix_cache.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

/// Milliseconds to compute `tokens` new prompt tokens in one step; 0 for none.
double prefill_milliseconds(const step_costs& costs, std::uint64_t tokens);
/// Milliseconds for one token of every decoding sequence, when they attend to `active` of `total` KV tokens.
double decode_milliseconds(const step_costs& costs, std::uint64_t active, std::uint64_t total);

using sequence_id = std::uint64_t;

/// One prompt that wants one answer.
struct sequence_request {
  sequence_id id = 0;
  std::vector<token_id> prompt;
  std::uint32_t max_tokens = 1;
  /// The answer does not end by itself before.
  std::uint32_t min_tokens = 0;
  bool ignore_eos = false;
  /// Sequences of different salts share no blocks.
  std::string salt;
  generator source;
};

enum class finish_reason : std::uint8_t { stop, length };

/// One token of an answer.
struct token_output {
  sequence_id id = 0;
  token_id token = 0;
  std::optional<finish_reason> finish;
  /// Prompt tokens that came from the cache when the sequence first ran.
  std::uint32_t cached_tokens = 0;
};

struct step_plan {
  /// At speed 1.
  double milliseconds = 0;
  /// New prompt tokens, and sequences that get their next token, in this step.
  std::uint64_t prefill_tokens = 0;
  std::uint32_t decoding = 0;
};

struct step_output {
  std::vector<token_output> tokens;
  std::vector<kv_event> events;
};

struct engine_load {
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  /// Share of KV blocks held by sequences, 0..1.
  double kv_usage = 0;
  // Totals since the start.
  std::uint64_t prefix_queries = 0;
  std::uint64_t prefix_hits = 0;
  std::uint64_t preemptions = 0;
};

/// Continuous batching as vLLM's scheduler does it: every step has a budget of tokens, running sequences
/// come first, prompts are computed in chunks, and when blocks run out the youngest running sequence gives
/// up its own and starts over later. Has no clock: the caller lets the plan's milliseconds pass between
/// begin_step() and end_step(), in real or virtual time.
class step_model {
 public:
  step_model(const settings& values, std::uint64_t hash_seed);
  ~step_model();

  /// errc::none, invalid_request (could never fit) or overloaded (too many wait).
  errc add(sequence_request request);
  /// Its blocks are free at once. Unknown ids are ignored.
  void abort(sequence_id id);
  /// Every running sequence starts over, every cached block is forgotten.
  void reset_prefix_cache();

  /// Schedules the next step; nothing if there is no work. Precondition: the one before has ended.
  std::optional<step_plan> begin_step();
  step_output end_step();
  /// Events outside of steps (a reset).
  std::vector<kv_event> take_events() { return cache_.take_events(); }

  engine_load load() const;
  const prefix_cache& cache() const { return cache_; }

 private:
  struct sequence;

  bool schedule_running(sequence& one, std::uint64_t& budget, step_plan& plan, std::uint64_t& attended);
  bool admit_waiting(std::uint64_t& budget, step_plan& plan);
  void compute(sequence& one, std::uint32_t tokens);
  void preempt_last();

  step_costs costs_;
  std::uint32_t context_length_;
  std::uint32_t max_num_seqs_;
  std::uint32_t max_batched_tokens_;
  std::uint32_t max_waiting_;
  prefix_cache cache_;
  std::unordered_map<sequence_id, std::unique_ptr<sequence>> sequences_;
  std::vector<sequence*> running_;
  std::deque<sequence*> waiting_;
  std::uint64_t prefix_queries_ = 0;
  std::uint64_t prefix_hits_ = 0;
  std::uint64_t preemptions_ = 0;
};

}  // namespace infernex::simulator
