#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "actors/simulator/prefix_cache.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

/// Milliseconds to compute `tokens` new prompt tokens in one step; 0 for none.
double prefill_milliseconds(const step_costs& costs, std::uint64_t tokens);
/// Milliseconds for a prompt that is computed alone, in chunks of the step's budget.
double unloaded_milliseconds(const step_costs& costs, std::uint32_t max_batched_tokens, std::uint32_t tokens);
/// Milliseconds for one token of every decoding sequence, when they attend to `active` of `total` KV tokens.
double decode_milliseconds(const step_costs& costs, std::uint64_t active, std::uint64_t total);

/// A sequence by lengths and block names alone.
struct sequence_shape {
  sequence_id id = 0;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t max_tokens = 1;
  /// Names of the prompt's full blocks, of all of them unless `naming` makes up the rest.
  std::span<const block_name> chain;
  /// Not 0: full blocks beyond `chain` get names that follow from this number, and that no other number gives. 0: the
  /// caller gives each full block its name by name_block().
  std::uint64_t naming = 0;
  /// The prompt's KV comes with it from elsewhere: only its last token is computed here.
  bool kv_present = false;
  /// Leading prompt tokens that were put into the cache for it from elsewhere: no hits of this engine's own.
  std::uint32_t remote_tokens = 0;
};

/// Where a sequence is kept until it is finished; used again afterwards.
using sequence_slot = std::uint32_t;

struct step_plan {
  /// At speed 1.
  double milliseconds = 0;
  /// New prompt tokens, and sequences that get their next token, in this step.
  std::uint64_t prefill_tokens = 0;
  std::uint32_t decoding = 0;
};

/// A sequence got its next token.
struct made_token {
  sequence_id id = 0;
  sequence_slot slot = 0;
  /// Tokens of its answer, this one included; and whether it may have no more.
  std::uint32_t answered = 0;
  bool at_limit = false;
  /// It decoded, rather than ending a prefill.
  bool decoded = false;
  /// Prompt tokens that came from the cache when the sequence first ran.
  std::uint32_t cached_tokens = 0;
};

/// Steps that are sure to do nothing but give each running sequence its next token: no block comes or goes, nobody
/// starts, ends or is preempted.
struct quiet_run {
  std::uint32_t steps = 0;
  std::uint32_t decoding = 0;
  /// KV tokens that the first of them attends to; each later one `decoding` more.
  std::uint64_t attended = 0;
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
  /// Tokens asked of other engines, and got.
  std::uint64_t external_queries = 0;
  std::uint64_t external_hits = 0;
};

/// Continuous batching as vLLM's scheduler does it: every step has a budget of tokens, running sequences come first,
/// prompts are computed in chunks, and when blocks run out the youngest running sequence gives up its own and starts
/// over later. Knows lengths and names of blocks, no tokens; has no clock: the caller lets the plan's milliseconds pass
/// between begin_step() and end_step(), in real or virtual time. No allocation after warm-up.
class batch_scheduler {
 public:
  explicit batch_scheduler(const settings& values);

  /// errc::none, invalid_request (could never fit) or overloaded (too many wait).
  errc add(const sequence_shape& shape, sequence_slot& slot);
  /// Ends it, whatever it does. Its blocks are free at once.
  void finish(sequence_slot slot);
  /// Ends it, but its blocks stay held, until they are released.
  std::vector<block_id> detach(sequence_slot slot);
  /// Holds what is cached of the chain and new blocks for the rest; false (and nothing held) if memory is short.
  bool reserve(std::span<const block_name> chain, std::vector<block_id>& blocks, std::uint32_t& cached);
  /// Reserved blocks from `first` on have got their content from elsewhere: they are reusable from now on.
  void fill(sequence_id of, std::span<const block_id> blocks, std::uint32_t first, std::span<const block_name> chain) {
    cache_.seal(of, blocks, first, blocks.size(), chain);
  }
  void release(std::span<const block_id> blocks);
  /// The name of the sequence's next block that is full, or will be once its tokens are computed.
  void name_block(sequence_slot slot, block_name name) { sequences_[slot].chain.push_back(name); }
  /// Every running sequence starts over, every cached block is forgotten.
  void reset_prefix_cache();

  /// Schedules the next step; nothing if there is no work. Precondition: the one before has ended.
  std::optional<step_plan> begin_step();
  /// In the order of running; valid until the next call. A sequence at its limit is the caller's to finish.
  std::span<const made_token> end_step();
  /// Sequences that the last begin_step() preempted.
  std::span<const sequence_slot> preempted() const { return preempted_; }
  sequence_id id(sequence_slot slot) const { return sequences_[slot].id; }

  /// The quiet steps ahead, and the way through `steps` of them at once, exactly as single steps would go. Precondition
  /// of both: the step before has ended.
  quiet_run quiet() const;
  void advance(std::uint32_t steps);
  double milliseconds(const quiet_run& of, std::uint32_t step) const {
    return decode_milliseconds(costs_, of.attended + std::uint64_t{step} * of.decoding, capacity_tokens());
  }

  std::uint32_t answered(sequence_slot slot) const { return sequences_[slot].length - sequences_[slot].prompt_tokens; }
  /// KV memory, in tokens.
  std::uint64_t capacity_tokens() const { return std::uint64_t{cache_.capacity()} * cache_.block_size(); }
  engine_load load() const;
  const prefix_cache& cache() const { return cache_; }
  void forget_changes() { cache_.forget_changes(); }

 private:
  friend class batch_forecast;

  struct sequence {
    sequence_id id = 0;
    std::uint32_t prompt_tokens = 0;
    std::uint32_t max_tokens = 0;
    std::uint32_t length = 0;
    /// Leading tokens whose KV is there (or will be when the step ends), and how many of them the step adds.
    std::uint32_t computed = 0;
    std::uint32_t scheduled = 0;
    /// Tokens known when it last left the waiting queue: what it computes as prefill.
    std::uint32_t prefill_end = 0;
    /// Set when it first ran.
    std::optional<std::uint32_t> cached_tokens;
    std::uint32_t remote_tokens = 0;
    bool kv_present = false;
    bool decoding = false;  // in the step at hand
    std::uint64_t naming = 0;
    std::vector<block_id> blocks;
    std::vector<block_name> chain;

    bool decodes() const { return computed >= prefill_end; }
  };

  bool schedule_running(sequence_slot slot, std::uint64_t& budget, step_plan& plan, std::uint64_t& attended);
  bool admit_waiting(std::uint64_t& budget, step_plan& plan, std::uint64_t& attended);
  void compute(sequence& one, std::uint32_t tokens);
  void extend_names(sequence& one, std::size_t blocks);
  void preempt_last();
  void leave(sequence_slot slot);

  step_costs costs_;
  std::uint32_t context_length_;
  std::uint32_t max_num_seqs_;
  std::uint32_t max_batched_tokens_;
  std::uint32_t max_waiting_;
  prefix_cache cache_;
  std::vector<sequence> sequences_;
  std::vector<sequence_slot> unused_;
  std::vector<sequence_slot> running_;
  std::deque<sequence_slot> waiting_;
  /// The first that waits found no memory, and none has been freed since.
  bool head_blocked_ = false;
  std::vector<sequence_slot> preempted_;
  std::vector<made_token> made_;
  std::vector<block_id> reused_;  // scratch
  std::uint64_t prefix_queries_ = 0;
  std::uint64_t prefix_hits_ = 0;
  std::uint64_t preemptions_ = 0;
  std::uint64_t external_queries_ = 0;
  std::uint64_t external_hits_ = 0;
};

}  // namespace infernex::simulator
