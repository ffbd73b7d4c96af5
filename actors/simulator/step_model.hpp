#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/simulator/batch_scheduler.hpp"
#include "actors/simulator/generator.hpp"
#include "actors/simulator/kv_event.hpp"
#include "actors/simulator/settings.hpp"

namespace infernex::simulator {

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
  /// When it ends at its limit, its prompt's full blocks stay held under its id.
  bool hold = false;
  /// Leading tokens that fill() put into the cache for it.
  std::uint32_t remote_tokens = 0;
};

/// Blocks that belong to no running sequence: a prefill engine's until they are read, a decode engine's that are to be
/// filled.
struct block_hold {
  std::vector<block_id> blocks;
  /// Of them, from the start: were in this engine's cache.
  std::uint32_t cached = 0;
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

struct step_output {
  std::vector<token_output> tokens;
  std::vector<kv_event> events;
};

/// The tokens of an engine, over the scheduler of their lengths: generates answers, names full blocks by a hash chained
/// over the sequence from its start, and tells events with the tokens in them. Has no clock either.
class step_model {
 public:
  /// `hash_seed` makes the block hashes of this process; draw it at random.
  step_model(const settings& values, std::uint64_t hash_seed);

  /// errc::none, invalid_request (could never fit) or overloaded (too many wait).
  errc add(sequence_request request);
  /// Its blocks are free at once. Unknown ids are ignored.
  void abort(sequence_id id);
  /// Every running sequence starts over, every cached block is forgotten.
  void reset_prefix_cache();

  /// Holds blocks for all of a prompt that need not be computed (the last token always is); null if memory is short.
  const block_hold* reserve(sequence_id id, std::vector<token_id> prompt, std::string salt);
  /// The reserved blocks have got their content.
  void fill(sequence_id reserved);
  /// What is held under this id, by reserve() or at a sequence's end; null if nothing.
  const block_hold* held(sequence_id id) const;
  void release(sequence_id held);
  /// Sequences that the last begin_step() preempted.
  std::vector<sequence_id> preempted() const;

  /// Schedules the next step; nothing if there is no work. Precondition: the one before has ended.
  std::optional<step_plan> begin_step() { return scheduler_.begin_step(); }
  step_output end_step();
  /// Events outside of steps (a reset).
  std::vector<kv_event> take_events();

  engine_load load() const { return scheduler_.load(); }
  const prefix_cache& cache() const { return scheduler_.cache(); }

 private:
  struct sequence {
    sequence_slot slot = 0;
    /// Prompt and answer so far.
    std::vector<token_id> tokens;
    /// Of the full blocks so far.
    std::vector<engine_hash> hashes;
    std::uint32_t min_tokens = 0;
    bool ignore_eos = false;
    std::string salt;
    generator source;
    /// Full blocks of the prompt to hold at the end; unset: none.
    std::optional<std::size_t> hold_blocks;
  };
  struct reservation {
    block_hold hold;
    /// Of a prompt that waits for its KV; unset: of a sequence that has ended, or the cache was reset.
    std::optional<sequence> waits;
  };

  const sequence& owner(sequence_id id) const;
  void hold(sequence_id id);
  std::uint32_t block_size() const { return scheduler_.cache().block_size(); }
  void hash_full_blocks(sequence& one) const;
  void tell_changes();

  std::uint64_t hash_seed_;
  batch_scheduler scheduler_;
  std::unordered_map<sequence_id, sequence> sequences_;
  std::unordered_map<sequence_id, reservation> held_;
  std::vector<kv_event> events_;
};

}  // namespace infernex::simulator
